/* mbarriers that count bytes, bulk copies, boxes of tensors of one to five dimensions. */
#include <string.h>

#include "common/simt/core/launch/launch_testing.h"
#include "common/simt/tensor_map/tensor_map.h"
#include "common/testing/testing.h"

enum { WORDS = 4096, BOX_BYTES = 4 * WORDS, TENSOR = 1 << 16 };

static void expect_fault(const struct launch_testing *t, enum simt_fault_kind kind,
                         const char *words) {
    EXPECT_INT_EQ(kind, t->fault.kind);
    if (strstr(t->fault.text, words) == NULL) {
        TEST_FAIL("no \"%s\" in: %s", words, t->fault.text);
    }
}

struct bulk_arguments {
    uint64_t in, out;
    int steps;
    unsigned expected;
};

static bool run_bulk(struct launch_testing *t, int steps, unsigned expected, int *in,
                     struct bulk_arguments *arguments, bool clean) {
    for (int n = 0; n < steps * 64; n++) {
        in[n] = n * n;
    }
    *arguments = (struct bulk_arguments){launch_testing_upload(t, in, (size_t)steps * 256),
                                         launch_testing_upload(t, NULL, (size_t)steps * 256), steps,
                                         expected};
    const struct testing_launch *launch =
        LAUNCH(.kernel = "bulk", .threads = {64}, .parameters = arguments, .limit = 100000);
    return clean ? launch_testing_run_clean(t, launch) : launch_testing_run(t, launch);
}

LAUNCH_TEST(hopper, bulk_copies_through_two_stages, HOPPER_PTX) {
    enum { STEPS = 5 };
    int in[STEPS * 64];
    struct bulk_arguments arguments;
    if (run_bulk(t, STEPS, 256, in, &arguments, true)) {
        const int *got = launch_testing_result(t, arguments.out);
        for (int n = 0; n < STEPS * 64; n++) {
            EXPECT_INT_EQ(in[n] + 1, got[n]);
        }
    }
}

LAUNCH_TEST(hopper, a_barrier_that_expects_other_bytes, HOPPER_PTX) {
    int in[64];
    struct bulk_arguments arguments;
    EXPECT_TRUE(!run_bulk(t, 1, 512, in, &arguments, false));
    expect_fault(t, SIMT_FAULT_ENDLESS, "256 bytes");
    EXPECT_TRUE(!run_bulk(t, 1, 128, in, &arguments, false));
    expect_fault(t, SIMT_FAULT_ENDLESS, "128 bytes more than were announced");
    EXPECT_STR_CONTAINS("exactly its arrivals and announced bytes", t->fault.hint);
}

LAUNCH_TEST(hopper, faulty_bulk_copies, HOPPER_PTX) {
    int in[68] = {0};
    struct {
        uint64_t in, out;
    } arguments = {launch_testing_upload(t, in, sizeof in),
                   launch_testing_upload(t, NULL, sizeof in)};
    EXPECT_TRUE(!launch_testing_block(t, "bulk_unwaited", 64, &arguments));
    expect_fault(t, SIMT_FAULT_COPY, "is still on its way: nobody has waited for its mbarrier");
    EXPECT_TRUE(t->fault.other.line > 0);
    EXPECT_TRUE(!launch_testing_block(t, "bulk_unwaited_again", 64, &arguments));
    expect_fault(t, SIMT_FAULT_COPY, "is still on its way: nobody has waited for its mbarrier");
    EXPECT_TRUE(!launch_testing_block(t, "bulk_misaligned", 32, &arguments));
    expect_fault(t, SIMT_FAULT_MISALIGNED, "multiples of 16");
}

LAUNCH_TEST(hopper, shared_memory_changed_while_a_copy_uses_it, HOPPER_PTX) {
    int in[64] = {0};
    uint64_t from = launch_testing_upload(t, in, sizeof in);
    struct {
        uint64_t out;
        int waits;
    } rewritten = {launch_testing_upload(t, NULL, 2 * sizeof in), 1};
    if (launch_testing_block_clean(t, "rewritten", 64, &rewritten)) {
        const int *got = launch_testing_result(t, rewritten.out);
        for (int n = 0; n < 128; n++) {
            EXPECT_INT_EQ(10 * (n % 64) + n / 64, got[n]);
        }
    }
    rewritten.waits = 0;
    EXPECT_TRUE(!launch_testing_block(t, "rewritten", 64, &rewritten));
    expect_fault(t, SIMT_FAULT_COPY, "which a bulk copy of the same thread at ");
    struct {
        uint64_t in, out;
    } cleared = {from, launch_testing_upload(t, NULL, sizeof in)};
    EXPECT_TRUE(!launch_testing_block(t, "cleared", 64, &cleared));
    expect_fault(t, SIMT_FAULT_COPY, "to which a bulk copy of the same thread at ");
}

LAUNCH_TEST(hopper, a_cluster_of_one, HOPPER_PTX) {
    uint64_t out = launch_testing_upload(t, NULL, 64 * sizeof(int));
    if (launch_testing_block_clean(t, "alone", 64, &out)) {
        const int *got = launch_testing_result(t, out);
        for (int n = 0; n < 64; n++) {
            EXPECT_INT_EQ(5 + n, got[n]);
        }
    }
}

/* Byte n of a tensor. */
static unsigned char byte_of(size_t n) {
    return (unsigned char)(n * 31 + n / 251 + 3);
}

struct box_arguments {
    struct tensor_map map;
    int place[TENSOR_DIMENSIONS];
    unsigned bytes;
    uint64_t out;
};

/* One byte of the box: byte `at` of row `row` of it, in global memory or filled. */
static unsigned char wanted(const struct box_arguments *a, uint32_t row, uint32_t at) {
    const struct tensor_map *map = &a->map;
    int64_t x = (int64_t)a->place[0] + at / map->element_bytes;
    bool inside = x >= 0 && x <= (int64_t)map->last[0];
    int64_t offset = x * map->element_bytes + at % map->element_bytes;
    for (uint32_t d = 1; d < map->rank; d++) {
        uint32_t count = (map->box[d] + map->steps[d] - 1u) / map->steps[d];
        int64_t place = (int64_t)a->place[d] + (int64_t)(row % count) * map->steps[d];
        row /= count;
        inside = inside && place >= 0 && place <= (int64_t)map->last[d];
        offset += place * (int64_t)map->strides[d - 1];
    }
    unsigned char nan = at % map->element_bytes == map->element_bytes - 1u ? 0x7f : 0xff;
    return inside ? byte_of((size_t)offset) : map->fill_nan ? nan : 0;
}

/* Chunk of a row as the row's number moves it. */
static uint32_t moved(uint32_t swizzle, uint32_t row_bytes, uint32_t row, uint32_t at) {
    uint32_t line = row * row_bytes / 128; /* of 128 bytes */
    uint32_t chunk = (row * row_bytes + at) / 16;
    uint32_t spans[] = {1, 2, 4, 8};
    return (chunk ^ line % spans[swizzle]) * 16 + at % 16;
}

static void check_box(struct launch_testing *t, struct box_arguments *a) {
    static unsigned char tensor[TENSOR];
    char kernel[] = "box_0";
    for (size_t n = 0; n < TENSOR; n++) {
        tensor[n] = byte_of(n);
    }
    kernel[4] = (char)('0' + a->map.rank);
    a->map.magic = TENSOR_MAP_MAGIC;
    a->map.address = launch_testing_upload(t, tensor, sizeof tensor);
    a->bytes = tensor_map_bytes(&a->map);
    a->out = launch_testing_upload(t, NULL, BOX_BYTES);
    if (!launch_testing_run_clean(
            t, LAUNCH(.kernel = kernel, .threads = {32}, .shared = BOX_BYTES, .parameters = a))) {
        return;
    }
    const unsigned char *got = launch_testing_result(t, a->out);
    uint32_t row_bytes = (uint32_t)a->map.box[0] * a->map.element_bytes, wrong = 0;
    for (uint32_t n = 0; n < a->bytes; n++) {
        uint32_t row = n / row_bytes, at = n % row_bytes;
        wrong += got[moved(a->map.swizzle, row_bytes, row, at)] != wanted(a, row, at);
    }
    for (uint32_t n = a->bytes; n < BOX_BYTES; n++) {
        wrong += got[n] != 7;
    }
    if (wrong > 0) {
        TEST_FAIL("a box of %u dimensions, swizzle %u: %u bytes wrong", a->map.rank, a->map.swizzle,
                  wrong);
    }
}

LAUNCH_TEST(hopper, boxes_of_one_to_five_dimensions, HOPPER_PTX) {
    struct box_arguments all = {.map = {.element_bytes = 2,
                                        .last = {29, 12, 6, 3, 2},
                                        .box = {16, 4, 3, 2, 2},
                                        .steps = {1, 1, 1, 1, 1},
                                        .strides = {64, 832, 5824, 17472}},
                                .place = {0, 0, 0, 0, 0}};
    for (uint8_t rank = 1; rank <= TENSOR_DIMENSIONS; rank++) {
        for (int shift = -8; shift <= 16; shift += 24) { /* inside and over both edges */
            struct box_arguments a = all;
            a.map.rank = rank;
            a.map.fill_nan = rank % 2;
            for (int d = 0; d < rank; d++) {
                a.place[d] = d == 0 ? shift : shift < 0 ? -1 : 1;
            }
            check_box(t, &a);
        }
    }
}

/* An H100 stops with an illegal instruction. */
LAUNCH_TEST(hopper, a_box_that_begins_between_16_bytes, HOPPER_PTX) {
    struct box_arguments a = {.map = {.magic = TENSOR_MAP_MAGIC,
                                      .element_bytes = 4,
                                      .rank = 2,
                                      .address = launch_testing_upload(t, NULL, TENSOR),
                                      .last = {63, 99},
                                      .box = {16, 8},
                                      .steps = {1, 1},
                                      .strides = {256}},
                              .place = {6, 2}};
    a.bytes = tensor_map_bytes(&a.map);
    a.out = launch_testing_upload(t, NULL, BOX_BYTES);
    EXPECT_TRUE(!launch_testing_run(
        t, LAUNCH(.kernel = "box_2", .threads = {32}, .shared = BOX_BYTES, .parameters = &a)));
    expect_fault(t, SIMT_FAULT_MISALIGNED, "from element 6 of dimension 0 on, which is byte 24");
}

LAUNCH_TEST(hopper, swizzles_and_steps, HOPPER_PTX) {
    for (uint8_t swizzle = 0; swizzle <= TENSOR_SWIZZLE_128; swizzle++) {
        struct box_arguments a = {.map = {.element_bytes = 4,
                                          .rank = 2,
                                          .swizzle = swizzle,
                                          .last = {63, 99},
                                          .box = {(uint16_t)(4 << swizzle), 64},
                                          .steps = {1, 1},
                                          .strides = {256}},
                                  .place = {8, 2}};
        check_box(t, &a);
        a.map.steps[1] = 3;
        check_box(t, &a);
    }
}

LAUNCH_TEST(hopper, a_box_is_stored_but_for_what_is_outside, HOPPER_PTX) {
    enum { ROWS = 20, COLUMNS = 40, BOX_ROWS = 16, BOX_COLUMNS = 32 };
    static unsigned short tensor[ROWS * COLUMNS], in[WORDS * 2];
    for (int n = 0; n < WORDS * 2; n++) {
        in[n] = (unsigned short)(n + 100);
    }
    struct tensor_map map = {.magic = TENSOR_MAP_MAGIC,
                             .element_bytes = 2,
                             .rank = 2,
                             .address = launch_testing_upload(t, tensor, sizeof tensor),
                             .last = {COLUMNS - 1, ROWS - 1},
                             .box = {BOX_COLUMNS, BOX_ROWS},
                             .steps = {1, 1},
                             .strides = {2 * COLUMNS}};
    struct {
        uint64_t map;
        int x, y;
        uint64_t in;
    } arguments = {launch_testing_upload(t, &map, sizeof map), 16, 9,
                   launch_testing_upload(t, in, sizeof in)};
    if (!launch_testing_run_clean(t, LAUNCH(.kernel = "store_box", .threads = {32},
                                            .shared = BOX_BYTES, .parameters = &arguments))) {
        return;
    }
    const unsigned short *got = launch_testing_result(t, map.address);
    for (int n = 0; n < ROWS * COLUMNS; n++) {
        int x = n % COLUMNS - 16, y = n / COLUMNS - 9;
        bool in_box = x >= 0 && x < BOX_COLUMNS && y >= 0 && y < BOX_ROWS;
        EXPECT_INT_EQ(in_box ? in[y * BOX_COLUMNS + x] : 0, got[n]);
    }
    static const struct {
        int x, y;
        enum simt_fault_kind kind;
        const char *words;
    } refused[] = {{13, 9, SIMT_FAULT_MISALIGNED, "which is byte 26 of a row"},
                   {-8, 9, SIMT_FAULT_OUT_OF_BOUNDS, "from element -8 of dimension 0 on"},
                   {16, -1, SIMT_FAULT_OUT_OF_BOUNDS, "from element -1 of dimension 1 on"}};
    for (size_t n = 0; n < sizeof refused / sizeof *refused; n++) {
        arguments.x = refused[n].x;
        arguments.y = refused[n].y;
        EXPECT_TRUE(!launch_testing_run(t, LAUNCH(.kernel = "store_box", .threads = {32},
                                                  .shared = BOX_BYTES, .parameters = &arguments)));
        expect_fault(t, refused[n].kind, refused[n].words);
    }
    map.magic = 0;
    arguments.map = launch_testing_upload(t, &map, sizeof map);
    EXPECT_TRUE(!launch_testing_run(t, LAUNCH(.kernel = "store_box", .threads = {32},
                                              .shared = BOX_BYTES, .parameters = &arguments)));
    expect_fault(t, SIMT_FAULT_TEXTURE, "was not made by cuTensorMapEncodeTiled");
}

/* Numbers whose sums are exact in every type. */
enum { REDUCTIONS = 6, BLOCKS = 3 };

static int value_of(int kind, int block, int n) {
    return (n * 7 + block * 13 + kind) % 50 - 20;
}

static unsigned short half_of(int value, bool bf16) {
    float exact = (float)value;
    uint32_t bits;
    memcpy(&bits, &exact, sizeof bits);
    if (bf16) {
        return (unsigned short)(bits >> 16);
    }
    uint32_t exponent = (bits >> 23 & 0xff) - 112;
    return (unsigned short)((bits >> 16 & 0x8000) |
                            (value == 0 ? 0 : exponent << 10 | (bits >> 13 & 0x3ff)));
}

/* Word n of a row: an int, a float, or two 16-bit floats of the same value. */
static uint32_t word_of(int kind, int value) {
    float exact = (float)value;
    uint32_t word = (uint32_t)value;
    if (kind == 3) {
        memcpy(&word, &exact, sizeof word);
    } else if (kind > 3) {
        word = half_of(value, kind == 5) * 0x10001u;
    }
    return word;
}

static int together(int kind, int a, int b) {
    switch (kind) {
    case 1:
        return a < b ? a : b;
    case 2:
        return a ^ b;
    case 5:
        return a > b ? a : b;
    default:
        return a + b;
    }
}

LAUNCH_TEST(hopper, reductions_in_bulk, HOPPER_PTX) {
    static uint32_t in[REDUCTIONS * BLOCKS * 64], before[REDUCTIONS * 64];
    for (int kind = 0; kind < REDUCTIONS; kind++) {
        for (int n = 0; n < 64; n++) {
            before[kind * 64 + n] = word_of(kind, value_of(kind, BLOCKS, n));
            for (int block = 0; block < BLOCKS; block++) {
                in[(kind * BLOCKS + block) * 64 + n] = word_of(kind, value_of(kind, block, n));
            }
        }
    }
    struct {
        uint64_t in, out;
    } arguments = {launch_testing_upload(t, in, sizeof in),
                   launch_testing_upload(t, before, sizeof before)};
    if (!launch_testing_run_clean(t, LAUNCH(.kernel = "reduce", .grid = {BLOCKS}, .threads = {64},
                                            .parameters = &arguments))) {
        return;
    }
    const uint32_t *got = launch_testing_result(t, arguments.out);
    for (int n = 0; n < REDUCTIONS * 64; n++) {
        int kind = n / 64, value = value_of(kind, BLOCKS, n % 64);
        for (int block = 0; block < BLOCKS; block++) {
            value = together(kind, value, value_of(kind, block, n % 64));
        }
        EXPECT_INT_EQ(word_of(kind, value), got[n]);
    }
}

LAUNCH_TEST(hopper, a_box_is_added_but_for_what_is_outside, HOPPER_PTX) {
    enum { ROWS = 20, COLUMNS = 20, SIDE = 16, FLOAT32 = 7, X = 8, Y = 9 };
    static float tensor[ROWS * COLUMNS], in[SIDE * SIDE];
    for (int n = 0; n < ROWS * COLUMNS; n++) {
        tensor[n] = (float)n;
    }
    for (int n = 0; n < SIDE * SIDE; n++) {
        in[n] = (float)(1000 + n);
    }
    struct {
        struct tensor_map map;
        int x, y;
        uint64_t in;
    } arguments = {{.magic = TENSOR_MAP_MAGIC,
                    .type = FLOAT32,
                    .element_bytes = 4,
                    .rank = 2,
                    .address = launch_testing_upload(t, tensor, sizeof tensor),
                    .last = {COLUMNS - 1, ROWS - 1},
                    .box = {SIDE, SIDE},
                    .steps = {1, 1},
                    .strides = {4 * COLUMNS}},
                   X,
                   Y,
                   launch_testing_upload(t, in, sizeof in)};
    if (!launch_testing_run_clean(t, LAUNCH(.kernel = "reduce_box", .grid = {2}, .threads = {32},
                                            .shared = 1024, .parameters = &arguments))) {
        return;
    }
    const float *got = launch_testing_result(t, arguments.map.address);
    for (int n = 0; n < ROWS * COLUMNS; n++) {
        int x = n % COLUMNS - X, y = n / COLUMNS - Y;
        bool inside = x >= 0 && x < SIDE && y >= 0 && y < SIDE;
        EXPECT_NEAR(n + (inside ? 2.0 * (1000 + y * SIDE + x) : 0.0), got[n], 0.0);
    }
}

LAUNCH_TEST(hopper, hints_and_prefetches_change_nothing, HOPPER_PTX) {
    enum { ROWS = 8, COLUMNS = 16, INT32 = 4 };
    int tensor[ROWS * COLUMNS], in[64], before[64 + ROWS * COLUMNS];
    for (int n = 0; n < ROWS * COLUMNS; n++) {
        tensor[n] = 3 * n + 1;
    }
    for (int n = 0; n < 64; n++) {
        in[n] = n * n;
        before[n] = 1000 + n;
    }
    struct {
        struct tensor_map map;
        uint64_t in, out;
    } arguments = {{.magic = TENSOR_MAP_MAGIC,
                    .type = INT32,
                    .element_bytes = 4,
                    .rank = 2,
                    .address = launch_testing_upload(t, tensor, sizeof tensor),
                    .last = {COLUMNS - 1, ROWS - 1},
                    .box = {COLUMNS, ROWS},
                    .steps = {1, 1},
                    .strides = {4 * COLUMNS}},
                   launch_testing_upload(t, in, sizeof in),
                   launch_testing_upload(t, before, sizeof before)};
    if (!launch_testing_block_clean(t, "hinted", 64, &arguments)) {
        return;
    }
    const int *got = launch_testing_result(t, arguments.out);
    for (int n = 0; n < 64; n++) {
        EXPECT_INT_EQ(in[n] + (n < 32 ? before[n] : 0), got[n]);
    }
    for (int n = 0; n < ROWS * COLUMNS; n++) {
        EXPECT_INT_EQ(tensor[n], got[64 + n]);
    }
}
