/*
 * Counts of single instructions, found again by their source lines.
 */
#include <string.h>

#include "common/simt/core/launch/launch_testing.h"
#include "common/testing/testing.h"

enum { BLOCKS = 6, STRIDE = 8, LOAD = 5, STORE_SHARED, LOAD_SHARED = 8, ADD, STORE };

/* atomicAdd() is a function of a header: the line that counts is its caller's. */
static uint32_t line_of(const struct ptx_instruction *source) {
    const struct ptx_location *location = source->location;
    while (location != NULL && location->caller != NULL) {
        location = location->caller;
    }
    return location != NULL ? location->line : source->line;
}

static const struct simt_site *site_at(const struct simt_sites *list, uint32_t line) {
    const struct simt_site *found = NULL;
    for (size_t n = 0; n < list->count; n++) {
        if (list->sites[n].requests > 0 && line_of(list->sites[n].source) == line) {
            EXPECT_TRUE(found == NULL);
            found = &list->sites[n];
        }
    }
    return found;
}

static bool launch(struct launch_testing *t, int host_threads, struct simt_sites *list) {
    struct {
        uint64_t out, in;
        int stride;
    } parameters = {launch_testing_upload(t, NULL, sizeof(float[BLOCKS * 32 + 32])),
                    launch_testing_upload(t, (float[32 * STRIDE]){0}, sizeof(float[32 * STRIDE])),
                    STRIDE};
    return launch_testing_run(t, LAUNCH(.kernel = "sites", .grid = {BLOCKS}, .threads = {32},
                                        .parameters = &parameters, .bounds_only = true,
                                        .host_threads = host_threads, .sites = list));
}

static void expect_site(const struct simt_sites *list, uint32_t line,
                        const struct simt_site *expected) {
    const struct simt_site *site = site_at(list, line);
    if (site == NULL) {
        TEST_FAIL("line %u has no site", line);
        return;
    }
    EXPECT_INT_EQ(expected->requests, site->requests);
    EXPECT_INT_EQ(expected->lanes, site->lanes);
    EXPECT_INT_EQ(expected->sectors, site->sectors);
    EXPECT_INT_EQ(expected->least_sectors, site->least_sectors);
    EXPECT_INT_EQ(expected->wavefronts, site->wavefronts);
    EXPECT_INT_EQ(expected->least_wavefronts, site->least_wavefronts);
    EXPECT_INT_EQ(expected->lines, site->lines);
    EXPECT_INT_EQ(expected->l1_hit_sectors, site->l1_hit_sectors);
}

static void expect_all(const struct simt_sites *list, uint64_t launches) {
    const uint64_t n = BLOCKS * launches, lanes = 32 * n;
    expect_site(list, LOAD, &(struct simt_site){NULL, n, lanes, 32 * n, 4 * n, 0, 0, 8 * n, 0});
    expect_site(list, STORE_SHARED, &(struct simt_site){NULL, n, lanes, 0, 0, 32 * n, n, 0, 0});
    expect_site(list, LOAD_SHARED, &(struct simt_site){NULL, n, lanes, 0, 0, n, n, 0, 0});
    expect_site(list, ADD, &(struct simt_site){NULL, n, lanes, n, n, 0, 0, 0, 0});
    expect_site(list, STORE, &(struct simt_site){NULL, n, lanes, 4 * n, 4 * n, 0, 0, n, 0});
}

C_TEST(sites, count_at_their_lines) {
    struct launch_testing t;
    ASSERT_TRUE(launch_testing_open(&t, SITES_PTX));
    struct simt_sites list = {0};
    EXPECT_TRUE(launch(&t, 1, &list));
    expect_all(&list, 1);
    const struct simt_site *store = site_at(&list, STORE);
    ASSERT_TRUE(store != NULL);
    EXPECT_TRUE(strstr(list.module->files[store->source->file], "sites.cu") != NULL);
    EXPECT_INT_EQ(8 * BLOCKS, t.counters.global_lines - BLOCKS);
    EXPECT_INT_EQ(32 * BLOCKS, t.counters.atomic_lanes);
    EXPECT_INT_EQ(28 * BLOCKS, t.counters.atomic_serial);
    EXPECT_TRUE(launch(&t, 3, &list));
    expect_all(&list, 2);
    simt_sites_free(&list);
    EXPECT_INT_EQ(0, list.count);
    launch_testing_close(&t);
}
