/**
 * @file xz_reader_test.c
 * @brief Bytes come back as they were, in pieces of any size; damage is told with its offset.
 */
#include "common/texts/xz_reader.h"

#include <stdlib.h>
#include <string.h>

#include "common/testing/testing.h"
#include "common/texts/archive_testing.h"

enum { LENGTH = 100000 };

/* Bytes that compress a little. */
static struct archive make_bytes(void) {
    struct archive a = {0};
    unsigned state = 1;
    unsigned char *bytes = malloc(LENGTH);
    for (size_t i = 0; i < LENGTH; i++) {
        state = state * 1664525u + 1013904223u;
        bytes[i] = (unsigned char)("abcdefgh"[state >> 29]);
    }
    archive_append(&a, bytes, LENGTH);
    free(bytes);
    return a;
}

/* Decompresses in pieces of `piece`, at most 3 * LENGTH bytes; *size receives their number. */
static enum status decompress(const struct archive *packed, size_t piece, unsigned char *out,
                              size_t *size, struct error *error) {
    struct xz_reader *reader;
    TRY(xz_reader_create(&reader, packed->data, packed->size, error));
    enum status status = STATUS_OK;
    size_t got = piece;
    *size = 0;
    while (status == STATUS_OK && got == piece && *size + piece <= 3 * LENGTH) {
        status = xz_reader_read(reader, out + *size, piece, &got, error);
        *size += got;
    }
    xz_reader_free(reader);
    return status;
}

C_TEST(xz_reader, gives_the_bytes_back_in_pieces_of_any_size) {
    static const size_t pieces[] = {1, 7, 4096, LENGTH, LENGTH + 1};
    bool made;
    struct archive bytes = make_bytes();
    struct archive packed = archive_xz(&bytes, &made);
    unsigned char *out = malloc(3 * LENGTH);
    if (made) {
        EXPECT_TRUE(xz_recognise(packed.data, packed.size));
        EXPECT_TRUE(!xz_recognise(packed.data, 5));
        for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
            size_t size;
            EXPECT_OK(decompress(&packed, pieces[i], out, &size, NULL));
            EXPECT_INT_EQ(LENGTH, size);
            EXPECT_TRUE(memcmp(out, bytes.data, LENGTH) == 0);
        }
        /* Two streams, one after the other. */
        size_t size, one = packed.size;
        struct archive twice = {0};
        archive_append(&twice, packed.data, one);
        archive_append(&twice, packed.data, one);
        EXPECT_OK(decompress(&twice, 5000, out, &size, NULL));
        EXPECT_INT_EQ(2 * LENGTH, size);
        free(twice.data);
    }
    free(out);
    free(packed.data);
    free(bytes.data);
    if (!made) {
        TEST_SKIP("built without liblzma");
    }
}

C_TEST(xz_reader, knows_how_many_bytes_it_has_used) {
    bool made;
    struct archive bytes = make_bytes();
    struct archive packed = archive_xz(&bytes, &made);
    unsigned char *out = malloc(LENGTH + 1);
    size_t got;
    struct xz_reader *reader = NULL;
    if (made) {
        EXPECT_OK(xz_reader_create(&reader, packed.data, packed.size, NULL));
        EXPECT_INT_EQ(0, xz_reader_offset(reader));
        EXPECT_OK(xz_reader_read(reader, out, LENGTH / 2, &got, NULL));
        size_t half = xz_reader_offset(reader);
        EXPECT_TRUE(half > 0 && half < packed.size);
        EXPECT_OK(xz_reader_read(reader, out, LENGTH + 1, &got, NULL));
        EXPECT_INT_EQ(packed.size, xz_reader_offset(reader));
    }
    xz_reader_free(reader);
    free(out);
    free(packed.data);
    free(bytes.data);
    if (!made) {
        TEST_SKIP("built without liblzma");
    }
}

C_TEST(xz_reader, refuses_bytes_that_are_damaged_or_missing) {
    bool made;
    struct archive bytes = make_bytes();
    struct archive packed = archive_xz(&bytes, &made);
    unsigned char *out = malloc(3 * LENGTH);
    for (size_t part = 0; made && part < 8; part++) {
        size_t size, length = packed.size;
        packed.size = length * part / 8;
        EXPECT_ERROR_CONTAINS(STATUS_TRUNCATED, "the xz data ends too early, after ",
                              decompress(&packed, 5000, out, &size, &error));
        packed.size = length;
        packed.data[length * part / 8 + length / 16] ^= 0x10;
        EXPECT_ERROR_CONTAINS(STATUS_BAD_FORMAT, "damaged xz data at offset ",
                              decompress(&packed, 5000, out, &size, &error));
        packed.data[length * part / 8 + length / 16] ^= 0x10;
    }
    if (made) {
        size_t size;
        EXPECT_ERROR_CONTAINS(STATUS_BAD_FORMAT, "not xz data at offset ",
                              decompress(&bytes, 5000, out, &size, &error));
    }
    free(out);
    free(packed.data);
    free(bytes.data);
    if (!made) {
        TEST_SKIP("built without liblzma");
    }
}
