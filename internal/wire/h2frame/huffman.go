package h2frame

// The Huffman code of RFC 7541 appendix B is canonical: codes of one length follow each other in the order of their symbols, and
// longer ones follow shorter ones. So the symbols in the order of their codes, and how many there are of each length, are all of it.

// huffmanSymbols are in the order of their codes. EOS, which no string may contain, follows the last.
const huffmanSymbols = "012aceiost" +
	" %-./3456789=A_bdfghlmnpru" +
	":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz" +
	"&*,;XZ" + "!\"()?" + "'+|" + "#>" + "\x00$@[]~" + "^}" + "<`{" + "\\\xc3\xd0" +
	"\x80\x82\x83\xa2\xb8\xc2\xe0\xe2" +
	"\x99\xa1\xa7\xac\xb0\xb1\xb3\xd1\xd8\xd9\xe3\xe5\xe6" +
	"\x81\x84\x85\x86\x88\x92\x9a\x9c\xa0\xa3\xa4\xa9\xaa\xad\xb2\xb5\xb9\xba\xbb\xbd\xbe\xc4\xc6\xe4\xe8\xe9" +
	"\x01\x87\x89\x8a\x8b\x8c\x8d\x8f\x93\x95\x96\x97\x98\x9b\x9d\x9e\xa5\xa6\xa8\xae\xaf\xb4\xb6\xb7\xbc\xbf\xc5\xe7\xef" +
	"\x09\x8e\x90\x91\x94\x9f\xab\xce\xd7\xe1\xec\xed" +
	"\xc7\xcf\xea\xeb" +
	"\xc0\xc1\xc8\xc9\xca\xcd\xd2\xd5\xda\xdb\xee\xf0\xf2\xf3\xff" +
	"\xcb\xcc\xd3\xd4\xd6\xdd\xde\xdf\xf1\xf4\xf5\xf6\xf7\xf8\xfa\xfb\xfc\xfd\xfe" +
	"\x02\x03\x04\x05\x06\x07\x08\x0b\x0c\x0e\x0f\x10\x11\x12\x13\x14\x15\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f\x7f\xdc\xf9" +
	"\x0a\x0d\x16"

// huffmanGroup are the codes of one length.
type huffmanGroup struct {
	last  uint32 // the last of them, at the top of a word that is filled up with ones
	bits  uint8
	first uint16 // place of the first one's symbol
	code  uint32 // the first
}

// huffmanGroups are in the order of their lengths.
var huffmanGroups = [...]huffmanGroup{
	{0x4fffffff, 5, 0, 0x0}, {0xb7ffffff, 6, 10, 0x14}, {0xf7ffffff, 7, 36, 0x5c}, {0xfdffffff, 8, 68, 0xf8},
	{0xff3fffff, 10, 74, 0x3f8}, {0xff9fffff, 11, 79, 0x7fa}, {0xffbfffff, 12, 82, 0xffa}, {0xffefffff, 13, 84, 0x1ff8},
	{0xfff7ffff, 14, 90, 0x3ffc}, {0xfffdffff, 15, 92, 0x7ffc}, {0xfffe5fff, 19, 95, 0x7fff0}, {0xfffedfff, 20, 98, 0xfffe6},
	{0xffff47ff, 21, 106, 0x1fffdc}, {0xffffafff, 22, 119, 0x3fffd2}, {0xffffe9ff, 23, 145, 0x7fffd8}, {0xfffff5ff, 24, 174, 0xffffea},
	{0xfffff7ff, 25, 186, 0x1ffffec}, {0xfffffbbf, 26, 190, 0x3ffffe0}, {0xfffffe1f, 27, 205, 0x7ffffde}, {0xffffffef, 28, 224, 0xfffffe2},
	{0xffffffff, 30, 253, 0x3ffffffc},
}

// huffmanSize is how many bytes n bytes of Huffman code stand for at most.
func huffmanSize(n int) int { return n*8/5 + 1 }

// appendHuffman appends what p stands for, to b, which has the capacity for it. False: p is no Huffman code (RFC 7541 section 5.2).
func appendHuffman(b, p []byte) ([]byte, bool) {
	word, n := uint64(0), 0 // n bits at the bottom of word were not decoded yet
	for {
		for n <= 32 && len(p) > 0 {
			word, p, n = word<<8|uint64(p[0]), p[1:], n+8
		}
		top := uint32(word << (64 - n) >> 32)
		if n < 32 {
			top |= 1<<(32-n) - 1
		}
		g := &huffmanGroups[0]
		for i := 1; top > g.last; i++ {
			g = &huffmanGroups[i]
		}
		if int(g.bits) > n {
			break // padding
		}
		at := int(g.first) + int(top>>(32-g.bits)-g.code)
		if at >= len(huffmanSymbols) {
			return b, false
		}
		b = append(b, huffmanSymbols[at])
		n -= int(g.bits)
		word &= 1<<n - 1
	}
	return b, n < 8 && word == 1<<n-1
}
