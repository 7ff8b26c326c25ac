#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/simt/fatbin/elf.h"
#include "common/simt/fatbin/fatbin.h"
#include "common/simt/fatbin/fatbin_image.h"
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
    fatbin_image_add(&image, PTX, 100, ZSTD, "less new"); /* unpacking it would not help */
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

enum { SPECIFIC = 1 << 20, FAMILY = 1 << 21 };

C_TEST(fatbin, code_for_one_gpu_runs_there_alone) {
    struct fatbin_image image = {.size = 0};
    fatbin_image_add(&image, PTX, 75, PLAIN, "old");
    fatbin_image_add(&image, PTX, 90, PLAIN | SPECIFIC, "hopper");
    fatbin_image_add(&image, PTX, 90, PLAIN, "plain");
    fatbin_image_add(&image, PTX, 100, PLAIN | FAMILY, "family");
    expect_found(&image, 89, "old", 75);
    expect_found(&image, 90, "hopper", 90);
    expect_found(&image, 100, "family", 100);
    expect_found(&image, 103, "family", 100);
    expect_found(&image, 120, "plain", 90);
    struct fatbin_image alone = {.size = 0};
    fatbin_image_add(&alone, PTX, 90, PLAIN | SPECIFIC, "hopper");
    char text[64];
    unsigned architecture;
    struct error error = {0};
    EXPECT_STATUS(STATUS_UNSUPPORTED,
                  find(&alone, alone.size, 100, text, sizeof text, &architecture, &error));
    EXPECT_STR_EQ("the program's PTX is for compute_90a, which GPUs of compute capability 10.0 do "
                  "not run: build it for compute_75, too (nvcc -gencode "
                  "arch=compute_75,code=compute_75)",
                  error.message);
    size_t at = 0;
    struct fatbin_entry entry;
    EXPECT_TRUE(fatbin_next_entry(alone.bytes, alone.size, &at, &entry));
    EXPECT_INT_EQ('a', entry.suffix);
}

/* Looks into a copy of exactly that size. @return registers of the kernel "k"; 0: nothing found */
static unsigned registers_in(const struct fatbin_image *image, size_t size, unsigned architecture) {
    struct fatbin_code code;
    unsigned registers = 0;
    void *copy = malloc(size > 0 ? size : 1);
    if (copy == NULL) {
        return 0;
    }
    memcpy(copy, image->bytes, size);
    if (fatbin_find_code(copy, size, architecture, &code)) {
        registers = cubin_registers(code.bytes, code.size, "k");
    }
    free(copy);
    return registers;
}

static void add_cubin(struct fatbin_image *image, unsigned architecture, uint64_t flags,
                      unsigned registers) {
    struct cubin_image cubin;
    cubin_image_make(&cubin, "k", registers);
    fatbin_image_add_bytes(image, MACHINE_CODE, architecture, flags, &cubin, sizeof cubin);
}

C_TEST(fatbin, finds_the_nearest_machine_code) {
    struct fatbin_image image = {.size = 0};
    fatbin_image_add(&image, PTX, 75, PLAIN, "text");
    add_cubin(&image, 75, PLAIN, 10);
    add_cubin(&image, 100, PLAIN, 40);
    add_cubin(&image, 86, PLAIN, 30);
    add_cubin(&image, 80, PLAIN, 20);
    add_cubin(&image, 89, ZSTD, 50);
    EXPECT_INT_EQ(30, registers_in(&image, image.size, 90));
    EXPECT_INT_EQ(30, registers_in(&image, image.size, 89));
    EXPECT_INT_EQ(20, registers_in(&image, image.size, 80));
    EXPECT_INT_EQ(10, registers_in(&image, image.size, 75));
    EXPECT_INT_EQ(10, registers_in(&image, image.size, 70));
    EXPECT_INT_EQ(40, registers_in(&image, image.size, 120));
}

C_TEST(fatbin, has_no_machine_code) {
    struct fatbin_image image = {.size = 0};
    fatbin_image_add(&image, PTX, 75, PLAIN, "text");
    add_cubin(&image, 75, LZ4, 10);
    EXPECT_INT_EQ(0, registers_in(&image, image.size, 90));
}

C_TEST(fatbin, finds_no_machine_code_in_half_of_it) {
    struct fatbin_image image = {.size = 0};
    add_cubin(&image, 90, PLAIN, 77);
    for (size_t size = 0; size < image.size; size++) {
        EXPECT_INT_EQ(0, registers_in(&image, size, 90));
    }
    EXPECT_INT_EQ(77, registers_in(&image, image.size, 90));
}

/* Reads a copy of exactly @p size bytes of the image. */
static unsigned registers_of(const struct cubin_image *cubin, size_t size, const char *kernel) {
    void *copy = malloc(size > 0 ? size : 1);
    if (copy == NULL) {
        return 0;
    }
    memcpy(copy, cubin, size);
    unsigned registers = cubin_registers(copy, size, kernel);
    free(copy);
    return registers;
}

C_TEST(cubin, tells_registers_by_name) {
    struct cubin_image cubin;
    cubin_image_make(&cubin, "saxpy", 255);
    EXPECT_INT_EQ(255, registers_of(&cubin, sizeof cubin, "saxpy"));
    EXPECT_INT_EQ(0, registers_of(&cubin, sizeof cubin, "saxp"));
    EXPECT_INT_EQ(0, registers_of(&cubin, sizeof cubin, "saxpyy"));
    for (size_t size = 0; size < offsetof(struct cubin_image, names) + 12; size++) {
        EXPECT_INT_EQ(0, registers_of(&cubin, size, "saxpy"));
    }
}

C_TEST(cubin, takes_no_damage_for_a_kernel) {
    struct cubin_image good, bad;
    cubin_image_make(&good, "k", 9);
    bad = good;
    bad.header.e_shoff = UINT64_MAX - 10;
    EXPECT_INT_EQ(0, registers_of(&bad, sizeof bad, "k"));
    bad = good;
    bad.header.e_shstrndx = 2;
    EXPECT_INT_EQ(0, registers_of(&bad, sizeof bad, "k"));
    bad = good;
    bad.header.e_shentsize = 1;
    EXPECT_INT_EQ(0, registers_of(&bad, sizeof bad, "k"));
    bad = good;
    bad.sections[0].sh_size = UINT64_MAX;
    EXPECT_INT_EQ(0, registers_of(&bad, sizeof bad, "k"));
    bad = good;
    bad.sections[1].sh_name = UINT32_MAX;
    EXPECT_INT_EQ(0, registers_of(&bad, sizeof bad, "k"));
    bad = good;
    memset(bad.names, 'x', sizeof bad.names); /* a name without an end */
    EXPECT_INT_EQ(0, registers_of(&bad, sizeof bad, "k"));
    bad = good;
    bad.header.e_ident[EI_CLASS] = ELFCLASS32;
    EXPECT_INT_EQ(0, registers_of(&bad, sizeof bad, "k"));
}

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

C_TEST(fatbin, lists_its_entries) {
    struct fatbin_image image = {.size = 0};
    struct fatbin_entry entry;
    size_t at = 0;
    fatbin_image_add(&image, MACHINE_CODE, 80, ZSTD, "code");
    fatbin_image_add(&image, PTX, 75, PLAIN, ".version 9.0");
    ASSERT_TRUE(fatbin_next_entry(image.bytes, image.size, &at, &entry));
    EXPECT_TRUE(!entry.ptx && entry.compressed && entry.architecture == 80);
    ASSERT_TRUE(fatbin_next_entry(image.bytes, image.size, &at, &entry));
    EXPECT_TRUE(entry.ptx && !entry.compressed && entry.architecture == 75);
    EXPECT_TRUE(!fatbin_next_entry(image.bytes, image.size, &at, &entry));
    at = SIZE_MAX;
    EXPECT_TRUE(!fatbin_next_entry(image.bytes, image.size, &at, &entry));
}

C_TEST(fatbin, tells_code_from_a_cubin_without_functions) {
    struct cubin_image cubin;
    struct fatbin_image image = {.size = 0};
    cubin_image_make(&cubin, "k", 40);
    fatbin_image_add_bytes(&image, MACHINE_CODE, 75, PLAIN, &cubin, sizeof cubin);
    EXPECT_TRUE(fatbin_has_code(image.bytes, image.size));
    memcpy(cubin.names + 1, ".nv.info", 9); /* in place of .text.k */
    image = (struct fatbin_image){.size = 0};
    fatbin_image_add_bytes(&image, MACHINE_CODE, 75, PLAIN, &cubin, sizeof cubin);
    EXPECT_TRUE(!fatbin_has_code(image.bytes, image.size));
    fatbin_image_add(&image, MACHINE_CODE, 75, LZ4, "packed"); /* nobody can tell */
    EXPECT_TRUE(fatbin_has_code(image.bytes, image.size));
    image = (struct fatbin_image){.size = 0};
    fatbin_image_add(&image, PTX, 75, PLAIN, ".version 9.0");
    EXPECT_TRUE(!fatbin_has_code(image.bytes, image.size));
}
