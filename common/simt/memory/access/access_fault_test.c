/*
 * Each kind of fault of a single access, with its message.
 */
#include <stdio.h>
#include <string.h>

#include "common/simt/memory/access/memory_harness.h"
#include "common/testing/testing.h"

enum { BYTES = 1024 };

static const struct harness_operands LOAD = {.dst = {R32}, .dst_count = 1, .address = R64};
static const struct harness_operands STORE = {.address = R64, .src = {R32}, .src_count = 1};

/* Runs and compares the fault with what it should be; @p want has one %s for the address in hex. */
static void expect_fault(struct harness *h, const char *opcode,
                         const struct harness_operands *operands, enum simt_fault_kind kind,
                         uint32_t thread, const char *want) {
    char text[768], address[32];
    EXPECT_TRUE(!harness_run(h, opcode, operands));
    EXPECT_INT_EQ(kind, h->block.fault.kind);
    EXPECT_INT_EQ(thread, h->block.fault.thread[0]);
    snprintf(address, sizeof address, "0x%llx", (unsigned long long)h->block.fault.address);
    const char *mark = strstr(want, "ADDRESS");
    int before = mark != NULL ? (int)(mark - want) : (int)strlen(want);
    snprintf(text, sizeof text, "%.*s%s%s", before, want, mark != NULL ? address : "",
             mark != NULL ? mark + 7 : "");
    EXPECT_STR_EQ(text, h->block.fault.text);
    harness_next_block(h, h->block.order);
}

static bool start(struct harness *h, uint64_t *global) {
    bool made = harness_create(h, SIMT_CHECK_BOUNDS);
    *global = harness_alloc(h, BYTES);
    return made && *global != 0;
}

/* A test of a harness `h` with an allocation of BYTES bytes at `global`. */
#define FAULT_TEST(name)                                          \
    static void fault_##name(struct harness *h, uint64_t global); \
    C_TEST(access_fault, name) {                                  \
        struct harness h;                                         \
        uint64_t global;                                          \
        ASSERT_TRUE(start(&h, &global));                          \
        fault_##name(&h, global);                                 \
        harness_free(&h);                                         \
    }                                                             \
    static void fault_##name(struct harness *h, uint64_t global __attribute__((unused)))

FAULT_TEST(global_bounds) {
    h->warp = &h->warps[1];
    harness_addresses(h, R64, global + BYTES - 20, 4);
    expect_fault(h, "ld.global.f32", &LOAD, SIMT_FAULT_OUT_OF_BOUNDS, 37,
                 "reads 4 bytes at ADDRESS, just past the end of allocation #1 (cudaMalloc, 1024 "
                 "bytes) (as an array of 4-byte elements: index 256, the last one is 255)");
    harness_addresses(h, R64, global + BYTES + 4, 0);
    expect_fault(h, "st.f32", &STORE, SIMT_FAULT_OUT_OF_BOUNDS, 32,
                 "writes 4 bytes at ADDRESS, 4 bytes past the end of allocation #1 (cudaMalloc, "
                 "1024 bytes) (as an array of 4-byte elements: index 257, the last one is 255)");
    harness_addresses(h, R64, global - 8, 0);
    expect_fault(h, "ld.global.f32", &LOAD, SIMT_FAULT_OUT_OF_BOUNDS, 32,
                 "reads 4 bytes at ADDRESS, 8 bytes before the start of allocation #1 (cudaMalloc, "
                 "1024 bytes) (as an array of 4-byte elements: index -2)");
    harness_addresses(h, R64, 0, 4);
    expect_fault(h, "red.global.add.u32", &STORE, SIMT_FAULT_OUT_OF_BOUNDS, 32,
                 "updates 4 bytes at ADDRESS, which is a null pointer");
}

FAULT_TEST(only_active_lanes_count) {
    harness_addresses(h, R64, global + BYTES - 20, 4);
    harness_mask(h, 0x1f);
    EXPECT_TRUE(harness_run(h, "ld.global.f32", &LOAD));
    harness_mask(h, 0x8000001f);
    EXPECT_TRUE(!harness_run(h, "ld.global.f32", &LOAD));
    EXPECT_INT_EQ(31, h->block.fault.thread[0]);
}

FAULT_TEST(partly_outside) {
    uint64_t odd = harness_alloc(h, 1000);
    const struct harness_operands load4 = {
        .dst = {R32, R32 + 1, R32 + 2, R32 + 3}, .dst_count = 4, .address = R64};
    harness_addresses(h, R64, odd + 992, 0);
    expect_fault(h, "ld.global.v4.f32", &load4, SIMT_FAULT_OUT_OF_BOUNDS, 0,
                 "reads 16 bytes at ADDRESS, 992 bytes into allocation #2 (cudaMalloc, 1000 "
                 "bytes): the last 8 of them lie past its end");
}

FAULT_TEST(freed) {
    EXPECT_OK(simt_memory_release(h->memory, global));
    harness_addresses(h, R64, global + 16, 4);
    expect_fault(h, "st.global.f32", &STORE, SIMT_FAULT_FREED, 0,
                 "writes 4 bytes at ADDRESS, 16 bytes into allocation #1 (cudaMalloc, 1024 bytes), "
                 "which was freed");
}

FAULT_TEST(host_pointers) {
    static float outside[32];
    harness_addresses(h, R64, (uint64_t)(uintptr_t)outside, 4);
    EXPECT_TRUE(!harness_run(h, "ld.global.f32", &LOAD));
    EXPECT_INT_EQ(SIMT_FAULT_OUT_OF_BOUNDS, h->block.fault.kind);
    EXPECT_TRUE(strstr(h->block.fault.text, "not device memory (a pointer of the host?)") != NULL);
}

FAULT_TEST(misaligned) {
    const struct harness_operands load4 = {
        .dst = {R32, R32 + 1, R32 + 2, R32 + 3}, .dst_count = 4, .address = R64};
    harness_addresses(h, R64, global + 4, 16);
    expect_fault(h, "ld.global.v4.f32", &load4, SIMT_FAULT_MISALIGNED, 0,
                 "reads 16 bytes at ADDRESS, which is not a multiple of 16: 4 bytes into "
                 "allocation #1 (cudaMalloc, 1024 bytes)");
    harness_addresses(h, R64, 64, 0);
    harness_row(h, R64)->u64[9] = 66;
    expect_fault(h, "st.shared.u32", &STORE, SIMT_FAULT_MISALIGNED, 9,
                 "writes 4 bytes at offset 66 of shared memory, which is not a multiple of 4");
}

FAULT_TEST(shared_bounds) {
    const struct harness_operands narrow = {.dst = {R32}, .dst_count = 1, .address = R32 + 15};
    h->block.shared_bytes = 1024;
    harness_addresses(h, R32 + 15, 1024 - 8, 4);
    expect_fault(h, "ld.shared.u32", &narrow, SIMT_FAULT_OUT_OF_BOUNDS, 2,
                 "reads 4 bytes at offset 1024 of shared memory, just past the end of the block's "
                 "1024 bytes");
    harness_addresses(h, R32 + 15, (uint64_t)-8, 4);
    expect_fault(
        h, "ld.shared.u32", &narrow, SIMT_FAULT_OUT_OF_BOUNDS, 0,
        "reads 4 bytes, 8 bytes before the start of the block's shared memory (as an array "
        "of 4-byte elements: index -2)");
    harness_addresses(h, R64, SIMT_SHARED_WINDOW + 1040, 0);
    expect_fault(h, "st.u32", &STORE, SIMT_FAULT_OUT_OF_BOUNDS, 0,
                 "writes 4 bytes at offset 1040 of shared memory, 16 bytes past the end of the "
                 "block's 1024 bytes");
    h->block.shared_bytes = 1028;
    const struct harness_operands load2 = {.dst = {R32, R32 + 1}, .dst_count = 2, .address = R64};
    harness_addresses(h, R64, 1024, 0);
    expect_fault(h, "ld.shared.v2.u32", &load2, SIMT_FAULT_OUT_OF_BOUNDS, 0,
                 "reads 8 bytes at offset 1024 of shared memory, the last 4 of them past the end "
                 "of the block's 1028 bytes");
}

FAULT_TEST(local_and_parameter_bounds) {
    harness_addresses(h, R64, HARNESS_LOCAL, 0);
    expect_fault(
        h, "st.local.u32", &STORE, SIMT_FAULT_OUT_OF_BOUNDS, 0,
        "writes 4 bytes at offset 256 of local memory (the function's own arrays), just past "
        "the end of the thread's 256 bytes");
    harness_addresses(h, R64, HARNESS_PARAMETERS, 0);
    expect_fault(h, "ld.param.u32", &LOAD, SIMT_FAULT_OUT_OF_BOUNDS, 0,
                 "reads 4 bytes at offset 64 of the parameters, just past the end of the kernel's "
                 "64 bytes");
    harness_addresses(h, R64, SIMT_PARAMETER_WINDOW, 0);
    expect_fault(h, "st.u32", &STORE, SIMT_FAULT_OUT_OF_BOUNDS, 0,
                 "writes to a parameter of the kernel, which can only be read");
}

/* Lanes on both sides of 2 GiB, and one in nobody's memory. */
FAULT_TEST(far_apart) {
    harness_addresses(h, R64, global, 4);
    harness_row(h, R64)->u64[20] = global + ((uint64_t)1 << 40);
    EXPECT_TRUE(!harness_run(h, "ld.global.f32", &LOAD));
    EXPECT_INT_EQ(20, h->block.fault.thread[0]);
}

FAULT_TEST(first_fault_of_a_block_stays) {
    harness_next_block(h, 11);
    harness_addresses(h, R64, 0, 0);
    EXPECT_TRUE(!harness_run(h, "ld.global.f32", &LOAD));
    h->warp = &h->warps[3];
    EXPECT_TRUE(!harness_run(h, "st.global.f32", &STORE));
    EXPECT_TRUE(strncmp(h->block.fault.text, "reads", 5) == 0);
    EXPECT_INT_EQ(11, h->block.fault.order);
    EXPECT_INT_EQ(3, h->block.fault.block[0]);
    EXPECT_INT_EQ(1, h->block.fault.block[1]);
}

static void print(const struct simt_fault *fault, char *text, size_t size) {
    FILE *stream = fmemopen(text, size, "w");
    simt_fault_print(fault, stream);
    fclose(stream);
}

FAULT_TEST(prints_for_beginners) {
    char text[2048], start_of[200];
    h->run.threads[0] = 8;
    h->run.threads[1] = 4;
    harness_addresses(h, R64, global + BYTES - 40, 4);
    EXPECT_TRUE(!harness_run(h, "ld.global.f32", &LOAD));
    print(&h->block.fault, text, sizeof text);
    snprintf(start_of, sizeof start_of,
             "out of bounds: thread (2,1,0) of block (0,0,0) reads 4 bytes at 0x%llx, ",
             (unsigned long long)global + BYTES);
    EXPECT_TRUE(strncmp(text, start_of, strlen(start_of)) == 0);
    EXPECT_TRUE(strstr(text, "\n  in kernel saxpy at kernel.cu:42\n  hint: ") != NULL);
    h->block.fault.file[0] = '\0';
    print(&h->block.fault, text, sizeof text);
    EXPECT_TRUE(strstr(text, "in kernel saxpy (compile with -lineinfo to see the line)") != NULL);
}

FAULT_TEST(kernel_names_are_readable) {
    static const struct {
        const char *mangled, *want;
    } rows[] = {{"_Z5saxpyPf", "saxpy"},
                {"_Z4gemmILi16ELb1EEvPKfPf", "gemm"},
                {"_ZN3lab4tileEPfi", "lab::tile"},
                {"_ZN12_GLOBAL__N_15saxpyEPf", "saxpy"},
                {"_ZL3addPii", "add"},
                {"plain", "plain"},
                {"_Z99short", "_Z99short"},
                {"_Z", "_Z"},
                {"_ZN", "_ZN"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        harness_next_block(h, 0);
        h->run.kernel = rows[i].mangled;
        simt_fail(h->warp, NULL, 0, SIMT_FAULT_TRAP, 0, "executes trap");
        EXPECT_STR_EQ(rows[i].want, h->block.fault.kernel);
    }
}
