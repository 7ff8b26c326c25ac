/* Memory is brought back as it was, with what was written of it. */
#include "common/simt/memory/space/undo.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/testing/fixture.h"

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
