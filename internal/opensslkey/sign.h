// What key.go asks of libcrypto. Each function writes the reason for a failure to why, because libcrypto
// keeps errors per thread and a goroutine moves between threads.

#ifndef TURNOUT_OPENSSLKEY_SIGN_H
#define TURNOUT_OPENSSLKEY_SIGN_H

#include <openssl/evp.h>
#include <openssl/objects.h>
#include <openssl/rsa.h>

// The room of a reason, a text that ends with 0.
enum { TURNOUT_WHY = 160 };

// turnout_key_load returns the key of a PKCS #8 structure, NULL on failure.
EVP_PKEY *turnout_key_load(const unsigned char *der, long size, char *why);

// turnout_key_sign signs a digest. nid names the hash that made it; with an RSA key, padding is RSA_PKCS1_PADDING or
// RSA_PKCS1_PSS_PADDING and salt the length in bytes of the salt of the latter; with another, padding is 0. *size is
// the room in sig, then the length of the signature. It returns 1, or 0 on failure.
int turnout_key_sign(EVP_PKEY *key, int nid, int padding, int salt, const unsigned char *digest, size_t digest_size,
                     unsigned char *sig, size_t *size, char *why);

#endif
