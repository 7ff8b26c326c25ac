#include "common/simt/fatbin/unpack.h"

#include <stdlib.h>
#include <string.h>

#include "common/simt/fatbin/fatbin_image.h"
#include "common/testing/testing.h"

enum { PTX = 1, PLAIN = 0x11, ZSTD = 0x8011, LZ4 = 0x2011 };

/* A frame of the format (RFC 8878) whose one block is stored as it is. */
struct frame {
    unsigned char bytes[64];
    size_t size;
};

static struct frame frame_of(const char *text, size_t length) {
    enum { HEADER = 6, BLOCK_HEADER = 3, SINGLE_SEGMENT = 0x20, LAST = 1 };
    struct frame frame = {{0x28, 0xb5, 0x2f, 0xfd, SINGLE_SEGMENT, (unsigned char)length},
                          HEADER + BLOCK_HEADER + length};
    fatbin_image_u64(frame.bytes + HEADER, length << 3 | LAST, BLOCK_HEADER);
    memcpy(frame.bytes + HEADER + BLOCK_HEADER, text, length);
    return frame;
}

/* Adds a compressed entry that says how long its text is. */
static void add(struct fatbin_image *image, unsigned architecture, uint64_t flags,
                const struct frame *frame, size_t text_size) {
    size_t at = image->size > 0 ? image->size : 16;
    fatbin_image_add_bytes(image, PTX, architecture, flags, frame->bytes, frame->size);
    fatbin_image_u64(image->bytes + at + 16, frame->size, 4);
    fatbin_image_u64(image->bytes + at + 56, text_size, 8);
}

C_TEST(unpack, finds_the_newest_that_is_allowed) {
    struct fatbin_image image = {.size = 0};
    struct fatbin_packed packed;
    struct frame frame = frame_of("text", 4);
    fatbin_image_add(&image, PTX, 90, PLAIN, "plain");
    add(&image, 89, LZ4, &frame, 4);
    EXPECT_TRUE(!fatbin_find_packed(image.bytes, image.size, 90, &packed));
    add(&image, 75, ZSTD, &frame, 4);
    add(&image, 86, ZSTD, &frame, 7);
    add(&image, 100, ZSTD, &frame, 4);
    EXPECT_TRUE(fatbin_find_packed(image.bytes, image.size, 90, &packed));
    EXPECT_INT_EQ(86, packed.architecture);
    EXPECT_INT_EQ(frame.size, packed.size);
    EXPECT_INT_EQ(7, packed.text_size);
    EXPECT_TRUE(!fatbin_find_packed(image.bytes, image.size, 70, &packed));
    EXPECT_TRUE(!fatbin_find_packed(image.bytes, 10, 90, &packed));
}

static enum status unpack(const struct frame *frame, size_t text_size, char **text, size_t *size,
                          struct error *error) {
    const struct fatbin_packed packed = {frame->bytes, frame->size, text_size, 75};
    return fatbin_unpack(&packed, text, size, error);
}

C_TEST(unpack, gives_the_text_without_zeros_at_its_end) {
    static const char ptx[] = ".version 9.0\n\0";
    struct frame frame = frame_of(ptx, sizeof ptx);
    struct error error = {0};
    char *text = NULL;
    size_t size = 0;
    if (!fatbin_can_unpack()) {
        TEST_SKIP("libzstd.so.1 is not installed");
    }
    EXPECT_OK(unpack(&frame, sizeof ptx, &text, &size, &error));
    ASSERT_TRUE(size == strlen(ptx));
    EXPECT_INT_EQ(0, memcmp(ptx, text, size));
    free(text);
}

C_TEST(unpack, refuses_what_is_damaged) {
    struct frame frame = frame_of("some text", 9);
    struct error error = {0};
    char *text = NULL;
    size_t size = 1;
    EXPECT_STATUS(STATUS_BAD_FORMAT, unpack(&frame, 0, &text, &size, &error));
    EXPECT_STATUS(STATUS_BAD_FORMAT, unpack(&frame, SIZE_MAX, &text, &size, &error));
    if (!fatbin_can_unpack()) {
        TEST_SKIP("libzstd.so.1 is not installed");
    }
    EXPECT_STATUS(STATUS_BAD_FORMAT, unpack(&frame, 8, &text, &size, &error));
    EXPECT_STATUS(STATUS_BAD_FORMAT, unpack(&frame, 10, &text, &size, &error));
    EXPECT_STR_EQ("compressed PTX of 18 bytes does not unpack to 10", error.message);
    frame.bytes[0] = 0;
    EXPECT_STATUS(STATUS_BAD_FORMAT, unpack(&frame, 9, &text, &size, &error));
    EXPECT_TRUE(text == NULL && size == 0);
}
