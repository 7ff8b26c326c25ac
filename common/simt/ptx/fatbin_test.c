#include "common/simt/ptx/fatbin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/simt/ptx/fatbin_image.h"
#include "common/testing/testing.h"

enum { PTX = 1, MACHINE_CODE = 2, PLAIN = 0x11, ZSTD = 0x8011, LZ4 = 0x2011 };

/* Looks into a copy of exactly that size, so that reading past it is seen. */
static enum status find(const struct fatbin_image *image, size_t size, unsigned highest, char *text,
                        size_t text_size, unsigned *architecture, struct error *error) {
    struct fatbin_ptx ptx;
    void *copy = malloc(size > 0 ? size : 1);
    if (copy == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    memcpy(copy, image->bytes, size);
    enum status status = fatbin_find_ptx(copy, size, highest, &ptx, error);
    snprintf(text, text_size, "%.*s", (int)ptx.size, ptx.text != NULL ? ptx.text : "");
    *architecture = ptx.architecture;
    free(copy);
    return status;
}

static void expect_found(const struct fatbin_image *image, unsigned highest, const char *want,
                         unsigned want_architecture) {
    char text[64];
    unsigned architecture;
    struct error error = {0};
    EXPECT_OK(find(image, image->size, highest, text, sizeof text, &architecture, &error));
    EXPECT_STR_EQ(want, text);
    EXPECT_INT_EQ(want_architecture, architecture);
}

static void expect_refused(const struct fatbin_image *image, size_t size, enum status want,
                           const char *message) {
    char text[64];
    unsigned architecture;
    struct error error = {0};
    EXPECT_STATUS(want, find(image, size, 90, text, sizeof text, &architecture, &error));
    EXPECT_STR_EQ(message, error.message);
    EXPECT_STR_EQ("", text);
}

C_TEST(fatbin, finds_the_highest_architecture_that_is_allowed) {
    struct fatbin_image image = {.size = 0};
    fatbin_image_add(&image, PTX, 75, PLAIN, "seventy-five");
    fatbin_image_add(&image, MACHINE_CODE, 90, PLAIN, "\177ELF");
    fatbin_image_add(&image, PTX, 86, PLAIN, "eighty-six");
    fatbin_image_add(&image, PTX, 80, PLAIN, "eighty");
    fatbin_image_add(&image, PTX, 100, PLAIN, "one hundred");
    expect_found(&image, 90, "eighty-six", 86);
    expect_found(&image, 85, "eighty", 80);
    expect_found(&image, 75, "seventy-five", 75);
    expect_found(&image, 120, "one hundred", 100);
}

C_TEST(fatbin, prefers_plain_ptx_to_newer_compressed_ptx) {
    struct fatbin_image image = {.size = 0};
    fatbin_image_add(&image, PTX, 75, PLAIN, "plain");
    fatbin_image_add(&image, PTX, 90, ZSTD, "packed");
    expect_found(&image, 90, "plain", 75);
}

C_TEST(fatbin, says_how_to_build_when_ptx_is_compressed) {
    static const uint64_t flags[] = {ZSTD, LZ4};
    for (size_t i = 0; i < 2; i++) {
        struct fatbin_image image = {.size = 0};
        fatbin_image_add(&image, PTX, 75, flags[i], "packed");
        expect_refused(&image, image.size, STATUS_UNSUPPORTED,
                       "the program's PTX is compressed: build it with nvcc --compress-mode=none");
    }
}

C_TEST(fatbin, says_how_to_build_when_there_is_only_machine_code) {
    struct fatbin_image image = {.size = 0};
    fatbin_image_add(&image, MACHINE_CODE, 90, PLAIN, "\177ELF");
    expect_refused(&image, image.size, STATUS_UNSUPPORTED,
                   "the program has only machine code and no PTX: build it with nvcc "
                   "-arch=compute_75 --compress-mode=none");
}

C_TEST(fatbin, says_how_to_build_when_all_ptx_is_too_new) {
    struct fatbin_image image = {.size = 0};
    fatbin_image_add(&image, PTX, 120, PLAIN, "new");
    fatbin_image_add(&image, PTX, 100, PLAIN, "less new");
    expect_refused(&image, image.size, STATUS_UNSUPPORTED,
                   "the program's PTX is for compute_100, at most compute_90 is understood: build "
                   "it with nvcc -arch=compute_90");
}

C_TEST(fatbin, refuses_an_image_without_entries) {
    struct fatbin_image image = {.size = 0};
    fatbin_image_add(&image, PTX, 75, PLAIN, "");
    fatbin_image_u64(image.bytes + 8, 0, 8);
    expect_refused(&image, 16, STATUS_UNSUPPORTED,
                   "the program has no GPU code and no PTX: build it with nvcc -arch=compute_75 "
                   "--compress-mode=none");
}

C_TEST(fatbin, refuses_what_is_no_fat_binary) {
    struct fatbin_image image = {.size = 16};
    memcpy(image.bytes, "ABCD............", 16);
    expect_refused(&image, 16, STATUS_BAD_FORMAT,
                   "not a fat binary: it begins with 0x44434241, not 0xba55ed50");
}

C_TEST(fatbin, refuses_every_prefix) {
    struct fatbin_image image = {.size = 0};
    fatbin_image_add(&image, PTX, 75, PLAIN, "first");
    fatbin_image_add(&image, PTX, 80, PLAIN, "second");
    for (size_t size = 0; size < image.size; size++) {
        char text[64];
        unsigned architecture;
        struct error error = {0};
        EXPECT_STATUS(STATUS_TRUNCATED,
                      find(&image, size, 90, text, sizeof text, &architecture, &error));
        EXPECT_TRUE(strlen(error.message) > 0);
    }
}

C_TEST(fatbin, refuses_sizes_that_do_not_fit) {
    struct fatbin_image image = {.size = 0};
    fatbin_image_add(&image, PTX, 75, PLAIN, "text");
    struct fatbin_image changed = image;
    fatbin_image_u64(changed.bytes + 16 + 8, UINT64_MAX - 79, 8); /* header + payload wraps */
    expect_refused(&changed, image.size, STATUS_TRUNCATED,
                   "an entry of a fat binary claims 80 + 18446744073709551536 bytes, 88 are left");
    changed = image;
    fatbin_image_u64(changed.bytes + 16 + 4, 0, 4); /* would never get on */
    expect_refused(&changed, image.size, STATUS_BAD_FORMAT,
                   "an entry of a fat binary has a header of 0 bytes");
    changed = image;
    fatbin_image_u64(changed.bytes + 6, 8, 2);
    expect_refused(&changed, image.size, STATUS_BAD_FORMAT, "a fat binary's header of 8 bytes");
}
