/*
 * Runs a fuzz target without libFuzzer, on its own seeds, on prefixes of them and
 * on random changes of them, with a fixed seed. Part of the ordinary tests, under
 * sanitizers; `--config=fuzz` links libFuzzer instead.
 */
#include "common/testing/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/terminal.h"
#include "common/testing/words.h"

bool fuzz_take(struct fuzz_input *input, struct fuzz_input *part) {
    uint32_t length;
    if (input->size < sizeof length) {
        return false;
    }
    memcpy(&length, input->data, sizeof length);
    input->data += sizeof length;
    input->size -= sizeof length;
    *part = (struct fuzz_input){input->data, length < input->size ? length : input->size};
    input->data += part->size;
    input->size -= part->size;
    return true;
}

void fuzz_append(unsigned char **seed, size_t *size, const void *data, size_t length) {
    uint32_t stored = (uint32_t)length;
    unsigned char *grown = realloc(*seed, *size + sizeof stored + length);
    fuzz_require(grown != NULL);
    memcpy(grown + *size, &stored, sizeof stored);
    memcpy(grown + *size + sizeof stored, data, length);
    *seed = grown;
    *size += sizeof stored + length;
}

#ifndef WARPBOOK_LIBFUZZER

/* Changes of a seed; a target with many seeds changes each of them less often. libFuzzer makes
 * more. */
enum { CHANGES_PER_SEED = 1000, CHANGES_IN_ALL = 4000, PREFIXES_PER_SEED = 256 };

static void run_copy(const unsigned char *data, size_t size) {
    unsigned char *copy = malloc(size > 0 ? size : 1); /* exact size: reads past it are seen */
    fuzz_require(copy != NULL);
    memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static void change(struct rng *rng, unsigned char *data, size_t size) {
    static const unsigned char values[] = {0x00, 0x01, 0x7f, 0x80, 0xff, '"', '{', ' '};
    for (uint64_t n = 1 + rng_below(rng, 4); n > 0; n--) {
        /* Half of the changes hit the first 64 bytes: most bugs are in the reading of headers. */
        uint64_t range = rng_below(rng, 2) == 0 && size > 64 ? 64 : size;
        unsigned char *byte = &data[rng_below(rng, range)];
        *byte = rng_below(rng, 2) == 0 ? values[rng_below(rng, sizeof values)]
                                       : (unsigned char)rng_u64(rng);
    }
}

static void run_seed(const unsigned char *seed, size_t size, size_t changes, struct rng *rng) {
    size_t step = 1 + size / PREFIXES_PER_SEED;
    for (size_t length = 0; length <= size; length += step) {
        run_copy(seed, length);
    }
    run_copy(seed, size);
    unsigned char *changed = malloc(size > 0 ? size : 1);
    fuzz_require(changed != NULL);
    for (size_t i = 0; i < changes && size > 0; i++) {
        memcpy(changed, seed, size);
        change(rng, changed, size);
        run_copy(changed, 1 + rng_below(rng, size));
        run_copy(changed, size);
    }
    free(changed);
}

static int replay(const char *path) {
    char *text;
    size_t size;
    struct error error = {0};
    enum status status = file_read(path, (size_t)1 << 30, &text, &size, &error);
    if (status != STATUS_OK) {
        return report_failure("fuzz", &error, status);
    }
    run_copy((unsigned char *)text, size);
    free(text);
    return 0;
}

static size_t count_seeds(void) {
    unsigned char *seed;
    size_t size, count = 0;
    for (; fuzz_seed(count, &seed, &size); count++) {
        free(seed);
    }
    return count;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) { /* files that a fuzzer found */
        if (replay(argv[i]) != 0) {
            return 1;
        }
    }
    struct rng rng = rng_create(1);
    unsigned char *seed;
    size_t size;
    const size_t count = count_seeds();
    if (count == 0) {
        fprintf(stderr, "this fuzz target has no seed\n");
        return 1;
    }
    const size_t share = CHANGES_IN_ALL / count;
    const size_t changes = share < CHANGES_PER_SEED ? share : CHANGES_PER_SEED;
    for (size_t i = 0; i < count && fuzz_seed(i, &seed, &size); i++) {
        run_seed(seed, size, changes, &rng);
        free(seed);
    }
    printf("%zu seed%s, prefixes and %zu changes of each: no finding\n", count, plural(count),
           2 * changes);
    return 0;
}

#else

/* Here libFuzzer's main() runs; before it, the seeds are written to the folder $WARPBOOK_SEEDS. */
__attribute__((constructor)) static void write_seeds(void) {
    const char *folder = getenv("WARPBOOK_SEEDS");
    unsigned char *seed;
    size_t size;
    for (size_t i = 0; folder != NULL && fuzz_seed(i, &seed, &size); i++) {
        char path[4096];
        struct error error = {0};
        snprintf(path, sizeof path, "%s/seed%zu", folder, i);
        enum status status = file_write(path, seed, size, &error);
        free(seed);
        if (status != STATUS_OK) {
            exit(report_failure("fuzz", &error, status));
        }
    }
}

#endif
