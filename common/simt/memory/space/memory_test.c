#include "common/simt/memory/space/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/simt/memory/space/undo.h"
#include "common/testing/fixture.h"

enum { LIMIT = 1 << 20 };

/* A test that sees `memory`, of so many bytes. */
#define MEMORY_TEST(name, bytes)                           \
    static void memory_##name(struct simt_memory *memory); \
    C_TEST(memory, name) {                                 \
        struct simt_memory *memory;                        \
        ASSERT_OK(simt_memory_create(&memory, bytes));     \
        memory_##name(memory);                             \
        simt_memory_free(memory);                          \
    }                                                      \
    static void memory_##name(struct simt_memory *memory)

C_TEST(memory, allocations_are_aligned_and_apart) {
    struct simt_memory *memory;
    uint64_t before = 0, address;
    ASSERT_OK(simt_memory_create(&memory, LIMIT));
    for (size_t n = 1; n < 200; n += 7) {
        ASSERT_OK(simt_memory_alloc(memory, n, 256, "cudaMalloc", &address));
        EXPECT_INT_EQ(0, address % 256);
        EXPECT_TRUE(before == 0 || address - before >= 256 + n - 7);
        EXPECT_TRUE(simt_memory_is_device(memory, (void *)(uintptr_t)address));
        before = address;
    }
    ASSERT_OK(simt_memory_alloc(memory, 1, 4096, "cudaMalloc", &address));
    EXPECT_INT_EQ(0, address % 4096);
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, simt_memory_alloc(memory, 1, 3, "x", &address));
    EXPECT_TRUE(!simt_memory_is_device(memory, &memory));
    simt_memory_free(memory);
    simt_memory_free(NULL);
}

C_TEST(memory, large_sizes_cost_nothing) {
    struct simt_memory *memory;
    uint64_t address;
    ASSERT_OK(simt_memory_create(&memory, (size_t)1 << 36));
    ASSERT_OK(simt_memory_alloc(memory, (size_t)1 << 35, 256, "cudaMalloc", &address));
    *(unsigned char *)simt_memory_host(memory, address + ((uint64_t)1 << 34)) = 1;
    EXPECT_STATUS(STATUS_OUT_OF_MEMORY,
                  simt_memory_alloc(memory, ((size_t)1 << 35) + 1, 256, "cudaMalloc", &address));
    EXPECT_STATUS(STATUS_OVERFLOW,
                  simt_memory_alloc(memory, SIZE_MAX, 256, "cudaMalloc", &address));
    simt_memory_free(memory);
    EXPECT_STATUS(STATUS_OVERFLOW, simt_memory_create(&memory, SIZE_MAX / 2));
    EXPECT_TRUE(memory == NULL);
}

MEMORY_TEST(finds_live_freed_and_nearest, LIMIT) {
    struct simt_allocation a;
    uint64_t first, second;
    EXPECT_TRUE(!simt_memory_find(memory, 12345, &a));
    EXPECT_INT_EQ(0, a.bytes);
    ASSERT_OK(simt_memory_alloc(memory, 100, 256, "cudaMalloc", &first));
    ASSERT_OK(simt_memory_alloc(memory, 200, 256, "__device__ variable v", &second));
    EXPECT_TRUE(simt_memory_find(memory, first + 99, &a));
    EXPECT_INT_EQ(1, a.serial);
    EXPECT_TRUE(!simt_memory_find(memory, first + 100, &a));
    EXPECT_INT_EQ(100, a.bytes);
    EXPECT_TRUE(simt_memory_above(memory, first + 100, &a));
    EXPECT_STR_EQ("__device__ variable v", a.what);
    EXPECT_TRUE(!simt_memory_above(memory, second, &a));
    uint64_t string;
    ASSERT_OK(simt_memory_alloc(memory, 8, 256, "$str", &string)); /* no one's array */
    EXPECT_TRUE(!simt_memory_find(memory, string + 100, &a));
    EXPECT_STR_EQ("__device__ variable v", a.what);
    EXPECT_TRUE(simt_memory_find(memory, string + 7, &a));
    EXPECT_STR_EQ("$str", a.what);
    EXPECT_OK(simt_memory_release(memory, first));
    EXPECT_TRUE(simt_memory_find(memory, first, &a) && a.freed);
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, simt_memory_release(memory, first));
    EXPECT_STATUS(STATUS_NOT_FOUND, simt_memory_release(memory, second + 1));
    EXPECT_STATUS(STATUS_NOT_FOUND, simt_memory_release(memory, 0));
}

C_TEST(memory, freed_ranges_rest_until_addresses_run_short) {
    struct simt_memory *memory;
    struct simt_allocation a;
    uint64_t first, address;
    size_t round = 0;
    const size_t bytes = (size_t)1 << 24;
    ASSERT_OK(simt_memory_create(&memory, bytes));
    ASSERT_OK(simt_memory_alloc(memory, bytes, 256, "cudaMalloc", &first));
    simt_memory_mark(memory, first, bytes);
    memset(simt_memory_host(memory, first), 1, 4096);
    EXPECT_OK(simt_memory_release(memory, first));
    /* Well over a gigabyte of addresses passes before the first comes back. */
    do {
        ASSERT_OK(simt_memory_alloc(memory, bytes, 256, "cudaMalloc", &address));
        EXPECT_TRUE(!simt_memory_written(memory, address, 1));
        EXPECT_OK(simt_memory_release(memory, address));
        round++;
    } while (address != first && round < 1000);
    EXPECT_TRUE(round > 60 && round < 200);
    EXPECT_TRUE(simt_memory_find(memory, address, &a));
    EXPECT_INT_EQ(round + 1, a.serial);
    simt_memory_free(memory);
}

MEMORY_TEST(many_small_cycles_stay_small, LIMIT) {
    uint64_t kept, address = 0;
    size_t used, total;
    ASSERT_OK(simt_memory_alloc(memory, 64, 256, "cudaMalloc", &kept));
    for (size_t n = 0; n < 300000; n++) {
        ASSERT_OK(simt_memory_alloc(memory, 64, 256, "cudaMalloc", &address));
        ASSERT_OK(simt_memory_release(memory, address));
    }
    simt_memory_usage(memory, &used, &total);
    EXPECT_INT_EQ(256, used);
    EXPECT_INT_EQ(LIMIT, total);
    struct simt_allocation a;
    EXPECT_TRUE(simt_memory_find(memory, kept, &a) && !a.freed);
}

/* Random allocs and frees against a plain list: never overlapping, limits kept. */
MEMORY_TEST(random_cycles_never_overlap, (size_t)1 << 27) {
    enum { SLOTS = 64 };
    uint64_t addresses[SLOTS] = {0};
    size_t sizes[SLOTS] = {0};
    struct rng rng = rng_create(7);
    for (size_t round = 0; round < 20000 && !test_has_failed(); round++) {
        size_t slot = rng_below(&rng, SLOTS);
        if (addresses[slot] != 0) {
            EXPECT_OK(simt_memory_release(memory, addresses[slot]));
            addresses[slot] = 0;
            continue;
        }
        sizes[slot] = rng_below(&rng, (uint64_t)1 << 20);
        ASSERT_OK(simt_memory_alloc(memory, sizes[slot], 256, "cudaMalloc", &addresses[slot]));
        for (size_t other = 0; other < SLOTS; other++) {
            if (other != slot && addresses[other] != 0) {
                EXPECT_TRUE(addresses[slot] >= addresses[other] + sizes[other] + 256 ||
                            addresses[other] >= addresses[slot] + sizes[slot] + 256);
            }
        }
        EXPECT_TRUE(!simt_memory_written(memory, addresses[slot], sizes[slot] + 1));
        simt_memory_mark(memory, addresses[slot], sizes[slot]);
    }
}

MEMORY_TEST(host_memory_can_be_used_at_its_address, LIMIT) {
    struct simt_allocation a;
    static char pinned[100];
    uint64_t address = (uint64_t)(uintptr_t)pinned;
    EXPECT_OK(simt_memory_register_host(memory, pinned, sizeof pinned, "cudaMallocHost"));
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT,
                  simt_memory_register_host(memory, pinned + 50, 100, "cudaMallocHost"));
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, simt_memory_register_host(memory, NULL, 1, "x"));
    EXPECT_TRUE(simt_memory_find(memory, address + 99, &a) && a.host);
    EXPECT_TRUE(simt_memory_host(memory, address) == pinned);
    EXPECT_TRUE(simt_memory_written(memory, address, 100));
    simt_memory_mark(memory, address, 100);
    EXPECT_STATUS(STATUS_NOT_FOUND, simt_memory_unregister_host(memory, pinned + 1));
    EXPECT_OK(simt_memory_unregister_host(memory, pinned));
    EXPECT_TRUE(!simt_memory_find(memory, address, &a));
}

MEMORY_TEST(marks_are_exact, LIMIT) {
    enum { BYTES = 1000 };
    struct rng rng = rng_create(3);
    bool want[BYTES] = {false};
    uint64_t address;
    ASSERT_OK(simt_memory_alloc(memory, BYTES, 256, "cudaMalloc", &address));
    for (size_t round = 0; round < 60; round++) {
        size_t begin = rng_below(&rng, BYTES);
        size_t bytes = rng_below(&rng, round % 4 == 0 ? 200 : 9);
        bytes = bytes > BYTES - begin ? BYTES - begin : bytes;
        simt_memory_mark_store(memory, address + begin, bytes);
        memset(want + begin, true, bytes);
        for (size_t n = 0; n < BYTES; n++) {
            EXPECT_INT_EQ(want[n], simt_memory_written(memory, address + n, 1));
        }
        size_t from = rng_below(&rng, BYTES - 100);
        bool all = true;
        for (size_t n = from; n < from + 100; n++) {
            all = all && want[n];
        }
        EXPECT_INT_EQ(all, simt_memory_written(memory, address + from, 100));
    }
}

static void count(const struct simt_allocation *allocation, void *argument) {
    *(size_t *)argument += allocation->bytes;
}

/* Copies of all lengths and distances, overlapping ones among them, against a plain table. */
MEMORY_TEST(copies_take_marks_along, 1 << 20) {
    enum { BYTES = 700 };
    struct rng rng = rng_create(5);
    uint64_t address;
    bool want[BYTES] = {false}, before[BYTES];
    ASSERT_OK(simt_memory_alloc(memory, BYTES, 256, "cudaMalloc", &address));
    for (int round = 0; round < 3000 && !test_has_failed(); round++) {
        size_t bytes = 1 + rng_below(&rng, round % 2 == 0 ? 20 : 300);
        size_t to = rng_below(&rng, BYTES - bytes), from = rng_below(&rng, BYTES - bytes);
        memcpy(before, want, sizeof before);
        if (rng_below(&rng, 3) == 0) {
            simt_memory_mark(memory, address + to, 5 < bytes ? 5 : bytes);
            memset(want + to, true, 5 < bytes ? 5 : bytes);
        } else {
            simt_memory_mark_copy(memory, address + to, address + from, bytes);
            memcpy(want + to, before + from, bytes);
        }
        for (size_t n = 0; n < BYTES; n++) {
            EXPECT_INT_EQ(want[n], simt_memory_written(memory, address + n, 1));
        }
    }
}

MEMORY_TEST(a_copy_of_what_is_not_written_is_not_written, 1 << 20) {
    struct simt_extent extent;
    uint64_t full, empty;
    ASSERT_OK(simt_memory_alloc(memory, 512, 256, "cudaMalloc", &full));
    ASSERT_OK(simt_memory_alloc(memory, 512, 256, "cudaMalloc", &empty));
    simt_memory_mark(memory, full, 512);
    EXPECT_TRUE(simt_memory_extent(memory, full, &extent) && extent.complete);
    simt_memory_mark_copy(memory, full + 100, empty, 8);
    EXPECT_TRUE(simt_memory_extent(memory, full, &extent) && !extent.complete);
    EXPECT_TRUE(!simt_memory_written(memory, full + 107, 1));
    EXPECT_TRUE(simt_memory_written(memory, full + 108, 404));
    simt_memory_mark(memory, full, 512);
    simt_memory_mark_copy(memory, empty, full, 512);
    EXPECT_TRUE(simt_memory_extent(memory, empty, &extent) && extent.complete);
    simt_memory_mark_copy(memory, empty, (uint64_t)(uintptr_t)&extent, sizeof extent);
    EXPECT_TRUE(simt_memory_written(memory, empty, 512));
}

MEMORY_TEST(visits_live_cudamallocs, LIMIT) {
    uint64_t address;
    size_t bytes = 0;
    EXPECT_OK(simt_memory_alloc(memory, 1, 256, "cudaMalloc", &address));
    EXPECT_OK(simt_memory_release(memory, address));
    EXPECT_OK(simt_memory_alloc(memory, 10, 256, "cudaMalloc", &address));
    EXPECT_OK(simt_memory_alloc(memory, 100, 256, "cudaMallocPitch", &address));
    EXPECT_OK(simt_memory_alloc(memory, 1000, 256, "__device__ variable v", &address));
    simt_memory_visit(memory, count, &bytes);
    EXPECT_INT_EQ(110, bytes);
}

/* ---- Memory is brought back as it was, with what was written of it ---- */

enum { BYTES = 40000, HOST_BYTES = 10000 };

struct fixture {
    struct simt_memory *memory;
    struct simt_undo *undo;
    uint64_t address;
    unsigned char *bytes;
};

static bool open_fixture(struct fixture *f) {
    *f = (struct fixture){.memory = NULL};
    if (simt_memory_create(&f->memory, 1 << 20) != STATUS_OK ||
        simt_undo_create(&f->undo, f->memory) != STATUS_OK ||
        simt_memory_alloc(f->memory, BYTES, 256, "cudaMalloc", &f->address) != STATUS_OK) {
        return false;
    }
    f->bytes = simt_memory_host(f->memory, f->address);
    memset(f->bytes, 7, BYTES);
    simt_memory_mark(f->memory, f->address, 100);
    return true;
}

static void close_fixture(struct fixture *f) {
    simt_undo_free(f->undo);
    simt_memory_free(f->memory);
    simt_undo_free(NULL);
}

#define UNDO_TEST(name) \
    FIXTURE_TEST(undo, name, struct fixture, f, open_fixture(f), close_fixture(f))

static void store(struct fixture *f, size_t offset, unsigned char value, size_t bytes) {
    simt_undo_save(f->undo, f->address + offset, bytes);
    memset(f->bytes + offset, value, bytes);
    simt_memory_mark_store(f->memory, f->address + offset, bytes);
}

UNDO_TEST(rolls_back_bytes_and_what_was_written) {
    store(f, 50, 1, 200);
    store(f, 60, 2, 10);
    store(f, 4000, 3, 9000); /* over several pages */
    EXPECT_OK(simt_undo_roll_back(f->undo));
    for (size_t n = 0; n < BYTES; n++) {
        EXPECT_INT_EQ(7, f->bytes[n]);
    }
    EXPECT_TRUE(simt_memory_written(f->memory, f->address, 100));
    EXPECT_TRUE(!simt_memory_written(f->memory, f->address + 100, 1));
    EXPECT_TRUE(!simt_memory_written(f->memory, f->address + 4000, 1));
}

UNDO_TEST(a_good_launch_is_kept_and_the_next_begins_there) {
    store(f, 50, 1, 200);
    simt_undo_commit(f->undo);
    store(f, 100, 2, 4);
    EXPECT_OK(simt_undo_roll_back(f->undo));
    EXPECT_INT_EQ(1, f->bytes[100]);
    EXPECT_INT_EQ(7, f->bytes[250]);
    EXPECT_TRUE(simt_memory_written(f->memory, f->address + 249, 1));
    EXPECT_OK(simt_undo_roll_back(f->undo)); /* nothing is left to bring back */
    EXPECT_INT_EQ(1, f->bytes[100]);
}

C_TEST(undo, host_memory_that_kernels_use) {
    struct fixture f;
    unsigned char *host = malloc(HOST_BYTES);
    ASSERT_TRUE(host != NULL && open_fixture(&f));
    memset(host, 5, HOST_BYTES);
    ASSERT_OK(simt_memory_register_host(f.memory, host + 10, HOST_BYTES - 20, "cudaMallocHost"));
    simt_undo_save(f.undo, (uint64_t)(uintptr_t)(host + 10), HOST_BYTES - 20);
    simt_undo_save(f.undo, (uint64_t)(uintptr_t)(host + 3000), 8);
    memset(host, 6, HOST_BYTES);
    EXPECT_OK(simt_undo_roll_back(f.undo));
    /* What lies around the memory is the program's own. */
    EXPECT_INT_EQ(6, host[9]);
    for (size_t n = 10; n < HOST_BYTES - 10; n++) {
        EXPECT_INT_EQ(5, host[n]);
    }
    EXPECT_INT_EQ(6, host[HOST_BYTES - 10]);
    close_fixture(&f);
    free(host);
}

static void *store_everywhere(void *argument) {
    struct fixture *f = argument;
    for (size_t offset = 0; offset + 4 <= BYTES; offset += 4) {
        simt_undo_save(f->undo, f->address + offset, 4);
        __atomic_store_n((uint32_t *)(void *)(f->bytes + offset), 1u, __ATOMIC_RELAXED);
    }
    return NULL;
}

UNDO_TEST(several_host_threads_store_at_the_same_time) {
    pthread_t threads[4];
    for (int n = 0; n < 4; n++) {
        ASSERT_TRUE(pthread_create(&threads[n], NULL, store_everywhere, f) == 0);
    }
    for (int n = 0; n < 4; n++) {
        pthread_join(threads[n], NULL);
    }
    EXPECT_INT_EQ(1, f->bytes[BYTES / 2]);
    EXPECT_OK(simt_undo_roll_back(f->undo));
    for (size_t n = 0; n < BYTES; n++) {
        EXPECT_INT_EQ(7, f->bytes[n]);
    }
}

static void expect_place(const struct simt_memory *memory, uint64_t address, const char *want) {
    char text[400];
    simt_memory_describe(memory, address, text, sizeof text);
    EXPECT_STR_EQ(want, text);
}

MEMORY_TEST(tensors_have_names, LIMIT) {
    static const char too_long[] = "a name of more than thirty-one characters";
    uint64_t q, arena;
    ASSERT_OK(simt_memory_alloc(memory, 4000, 256, "cudaMalloc", &q));
    ASSERT_OK(simt_memory_alloc(memory, 1024, 256, "cudaMalloc", &arena));
    EXPECT_OK(simt_memory_name(memory, q, "q"));
    expect_place(memory, q + 4000, "just past the end of \"q\" (cudaMalloc, 4000 bytes)");
    expect_place(memory, q + 8, "8 bytes into \"q\" (cudaMalloc, 4000 bytes)");
    EXPECT_OK(simt_memory_name(memory, q, too_long));
    expect_place(memory, q,
                 "0 bytes into \"a name of more than thirty-one \" (cudaMalloc, 4000 bytes)");
    EXPECT_OK(simt_memory_name(memory, arena + 256, "k"));
    expect_place(memory, arena + 300,
                 "300 bytes into allocation #2 (cudaMalloc, 1024 bytes; \"k\" begins at byte 256)");
    expect_place(memory, arena + 8, "8 bytes into allocation #2 (cudaMalloc, 1024 bytes)");
    simt_memory_launched(memory);
    EXPECT_OK(simt_memory_name(memory, arena + 512, "v")); /* the arena is divided up anew */
    expect_place(memory, arena + 300, "300 bytes into allocation #2 (cudaMalloc, 1024 bytes)");
    for (int launch = 0; launch < 8; launch++) {
        simt_memory_launched(memory);
    }
    expect_place(memory, arena + 600, "600 bytes into allocation #2 (cudaMalloc, 1024 bytes)");
    EXPECT_OK(simt_memory_release(memory, q));
    EXPECT_STATUS(STATUS_NOT_FOUND, simt_memory_name(memory, q, "q"));
    expect_place(memory, q, "0 bytes into allocation #1 (cudaMalloc, 4000 bytes)");
}

MEMORY_TEST(bad_names_are_refused, LIMIT) {
    uint64_t q;
    ASSERT_OK(simt_memory_alloc(memory, 4000, 256, "cudaMalloc", &q));
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, simt_memory_name(memory, q, NULL));
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, simt_memory_name(memory, q, ""));
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, simt_memory_name(memory, q, "a\nb"));
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, simt_memory_name(memory, q, "\033[2J"));
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, simt_memory_name(memory, q, "a \"quote\""));
    EXPECT_STATUS(STATUS_NOT_FOUND, simt_memory_name(memory, 64, "q"));
    expect_place(memory, q, "0 bytes into allocation #1 (cudaMalloc, 4000 bytes)");
}
