#include "grader/report/sha1.h"

#include <stdio.h>
#include <string.h>

#include "common/base/file.h"

static uint32_t rotate_left(uint32_t x, int n) {
    return x << n | x >> (32 - n);
}

/* Which function and constant a round uses. */
static uint32_t mix(int round, uint32_t b, uint32_t c, uint32_t d) {
    return round < 20   ? ((b & c) | (~b & d)) + 0x5a827999u
           : round < 40 ? (b ^ c ^ d) + 0x6ed9eba1u
           : round < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdcu
                        : (b ^ c ^ d) + 0xca62c1d6u;
}

static void add_block(uint32_t state[5], const unsigned char *block) {
    uint32_t w[80];
    uint32_t v[5];
    for (int i = 0; i < 16; i++) {
        const unsigned char *p = block + 4 * (size_t)i;
        w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    }
    for (int i = 16; i < 80; i++) {
        w[i] = rotate_left(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    }
    memcpy(v, state, sizeof v);
    for (int i = 0; i < 80; i++) {
        uint32_t next = rotate_left(v[0], 5) + mix(i, v[1], v[2], v[3]) + v[4] + w[i];
        v[4] = v[3];
        v[3] = v[2];
        v[2] = rotate_left(v[1], 30);
        v[1] = v[0];
        v[0] = next;
    }
    for (int i = 0; i < 5; i++) {
        state[i] += v[i];
    }
}

struct sha1 sha1_begin(void) {
    return (struct sha1){
        .state = {0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u, 0xc3d2e1f0u}};
}

void sha1_add(struct sha1 *sha1, const void *data, size_t size) {
    const unsigned char *bytes = data;
    while (size > 0) {
        size_t filled = sha1->bytes % sizeof sha1->block;
        size_t room = sizeof sha1->block - filled;
        size_t take = size < room ? size : room;
        memcpy(sha1->block + filled, bytes, take);
        sha1->bytes += take;
        bytes += take;
        size -= take;
        if (take == room) {
            add_block(sha1->state, sha1->block);
        }
    }
}

void sha1_end_bytes(struct sha1 *sha1, unsigned char digest[SHA1_BYTES]) {
    static const unsigned char padding[64] = {0x80};
    uint64_t bits = 8 * sha1->bytes;
    unsigned char length[8];
    for (int i = 0; i < 8; i++) {
        length[i] = (unsigned char)(bits >> (56 - 8 * i));
    }
    size_t filled = sha1->bytes % 64;
    sha1_add(sha1, padding, filled < 56 ? 56 - filled : 120 - filled);
    sha1_add(sha1, length, sizeof length);
    for (int i = 0; i < SHA1_BYTES; i++) {
        digest[i] = (unsigned char)(sha1->state[i / 4] >> (24 - 8 * (i % 4)));
    }
}

void sha1_text(const unsigned char digest[SHA1_BYTES], char text[SHA1_TEXT]) {
    for (int i = 0; i < SHA1_BYTES; i++) {
        snprintf(text + 2 * (size_t)i, 3, "%02x", digest[i]);
    }
}

void sha1_end(struct sha1 *sha1, char text[SHA1_TEXT]) {
    unsigned char digest[SHA1_BYTES];
    sha1_end_bytes(sha1, digest);
    sha1_text(digest, text);
}

enum status sha1_add_file(struct sha1 *sha1, const char *path, struct error *error) {
    struct file_view view;
    TRY(file_view_open(&view, path, error));
    uint64_t size = view.size;
    sha1_add(sha1, &size, sizeof size);
    sha1_add(sha1, view.data, view.size);
    file_view_close(&view);
    return STATUS_OK;
}
