//go:build openssl

#include "sign.h"

#include <openssl/err.h>
#include <openssl/x509.h>

static void explain(char *why) {
	unsigned long code = ERR_peek_last_error();
	if (code != 0) {
		ERR_error_string_n(code, why, TURNOUT_WHY);
	}
	ERR_clear_error();
}

EVP_PKEY *turnout_key_load(const unsigned char *der, long size, char *why) {
	ERR_clear_error();
	EVP_PKEY *key = NULL;
	PKCS8_PRIV_KEY_INFO *info = d2i_PKCS8_PRIV_KEY_INFO(NULL, &der, size);
	if (info != NULL) {
		key = EVP_PKCS82PKEY(info);
		PKCS8_PRIV_KEY_INFO_free(info); // overwrites its copy of the key
	}
	if (key == NULL) {
		explain(why);
	}
	return key;
}

static const EVP_MD *hash_of(int nid) {
	switch (nid) {
	case NID_md5_sha1:
		return EVP_md5_sha1();
	case NID_sha1:
		return EVP_sha1();
	case NID_sha224:
		return EVP_sha224();
	case NID_sha256:
		return EVP_sha256();
	case NID_sha384:
		return EVP_sha384();
	case NID_sha512:
		return EVP_sha512();
	}
	return NULL;
}

int turnout_key_sign(EVP_PKEY *key, int nid, int padding, int salt, const unsigned char *digest, size_t digest_size,
                     unsigned char *sig, size_t *size, char *why) {
	ERR_clear_error();
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(key, NULL);
	int ok = ctx != NULL
		&& EVP_PKEY_sign_init(ctx) > 0
		&& (padding == 0 || EVP_PKEY_CTX_set_rsa_padding(ctx, padding) > 0)
		&& EVP_PKEY_CTX_set_signature_md(ctx, hash_of(nid)) > 0
		&& (padding != RSA_PKCS1_PSS_PADDING || EVP_PKEY_CTX_set_rsa_pss_saltlen(ctx, salt) > 0)
		&& EVP_PKEY_sign(ctx, sig, size, digest, digest_size) > 0;
	if (!ok) {
		explain(why);
	}
	EVP_PKEY_CTX_free(ctx);
	return ok;
}
