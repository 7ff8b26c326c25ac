#include "common/ranks/group.h"

#include <string.h>

#include "common/testing/testing.h"

/* Skips where fewer GPUs are. */
static bool open(struct comm_group **group, int ranks) {
    struct error error = {0};
    if (device_open(&error) != STATUS_OK) {
        test_skip(__FILE__, __LINE__, "%s", error.message);
        return false;
    }
    if (comm_devices() < ranks) {
        test_skip(__FILE__, __LINE__, "needs %d GPUs that reach each other; there are %d", ranks,
                  comm_devices());
        return false;
    }
    EXPECT_OK(comm_group_create(group, ranks, &error));
    return *group != NULL;
}

static enum status gather_ranks(struct comm *comm, void *context, struct error *error) {
    int *wrong = context;
    for (int round = 0; round < 20; round++) {
        int mine = 100 * round + comm->rank, all[COMM_MAX_RANKS];
        TRY(comm_all_gather(comm, &mine, sizeof mine, all, error));
        for (int r = 0; r < comm->ranks; r++) {
            if (all[r] != 100 * round + r) {
                __atomic_fetch_add(wrong, 1, __ATOMIC_RELAXED);
            }
        }
    }
    return STATUS_OK;
}

C_TEST(group, gathers) {
    struct comm_group *group;
    struct error error = {0};
    int wrong = 0;
    if (open(&group, 4)) {
        EXPECT_OK(comm_group_run(group, gather_ranks, &wrong, &error));
        EXPECT_INT_EQ(0, wrong);
        comm_group_free(group);
    }
}

/* Each rank writes its number into all ranks' memory. */
static enum status write_to_all(struct comm *comm, void *context, struct error *error) {
    struct comm_memory memory;
    int got[COMM_MAX_RANKS], *wrong = context;
    TRY(comm_alloc(comm, sizeof got, &memory, error));
    for (int r = 0; r < comm->ranks; r++) {
        int value = 7 + comm->rank;
        TRY(device_write((int *)memory.at[r] + comm->rank, &value, sizeof value, NULL, error));
    }
    TRY(comm_barrier(comm, error));
    TRY(device_read(got, memory.at[comm->rank], sizeof got, NULL, error));
    for (int r = 0; r < comm->ranks; r++) {
        if (got[r] != 7 + r) {
            __atomic_fetch_add(wrong, 1, __ATOMIC_RELAXED);
        }
    }
    comm_free(comm, &memory);
    return STATUS_OK;
}

C_TEST(group, memory_is_symmetric) {
    struct comm_group *group;
    struct error error = {0};
    int wrong = 0;
    if (open(&group, 4)) {
        EXPECT_OK(comm_group_run(group, write_to_all, &wrong, &error));
        EXPECT_INT_EQ(0, wrong);
        comm_group_free(group);
    }
}

static enum status rank_2_fails(struct comm *comm, void *context, struct error *error) {
    (void)context;
    TRY(comm_barrier(comm, error));
    if (comm->rank == 2) {
        return error_set(error, STATUS_IO, "no more paper");
    }
    return comm_barrier(comm, error);
}

C_TEST(group, a_rank_that_fails_ends_the_others) {
    struct comm_group *group;
    struct error error = {0};
    if (open(&group, 4)) {
        EXPECT_INT_EQ(STATUS_IO, comm_group_run(group, rank_2_fails, NULL, &error));
        EXPECT_STR_EQ("rank 2: no more paper", error.message);
        comm_group_free(group);
    }
}

static enum status rank_0_leaves(struct comm *comm, void *context, struct error *error) {
    (void)context;
    return comm->rank == 0 ? STATUS_OK : comm_barrier(comm, error);
}

C_TEST(group, a_rank_that_leaves_is_told) {
    struct comm_group *group;
    struct error error = {0};
    if (open(&group, 2)) {
        EXPECT_INT_EQ(STATUS_MISMATCH, comm_group_run(group, rank_0_leaves, NULL, &error));
        EXPECT_TRUE(strstr(error.message, "already ended") != NULL);
        comm_group_free(group);
    }
}

static enum status sizes_differ(struct comm *comm, void *context, struct error *error) {
    struct comm_memory memory;
    (void)context;
    return comm_alloc(comm, 100 + (size_t)comm->rank, &memory, error);
}

C_TEST(group, sizes_that_differ_are_told) {
    struct comm_group *group;
    struct error error = {0};
    if (open(&group, 2)) {
        EXPECT_INT_EQ(STATUS_MISMATCH, comm_group_run(group, sizes_differ, NULL, &error));
        EXPECT_TRUE(strstr(error.message, "rank 1 101") != NULL);
        comm_group_free(group);
    }
}

C_TEST(group, more_ranks_than_devices) {
    struct comm_group *group;
    struct error error = {0};
    if (device_open(&error) == STATUS_OK && comm_devices() < COMM_MAX_RANKS) {
        EXPECT_INT_EQ(STATUS_NO_DEVICE, comm_group_create(&group, COMM_MAX_RANKS, &error));
        EXPECT_INT_EQ(STATUS_INVALID_ARGUMENT,
                      comm_group_create(&group, COMM_MAX_RANKS + 1, &error));
    }
}
