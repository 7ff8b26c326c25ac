#include "common/simt/core/launch/launch_testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/testing/testing.h"

static enum status load_text(struct launch_testing *t, const char *text, size_t size,
                             struct error *error) {
    struct ptx_module *ptx = NULL;
    TRY(simt_memory_create(&t->memory, (size_t)1 << 30));
    TRY(simt_global_shadow_create(&t->shadow, t->memory));
    TRY(ptx_parse(&ptx, text, size, error));
    t->ptx = ptx;
    return simt_module_load(&t->module, ptx, t->memory, error);
}

enum status launch_testing_load(struct launch_testing *t, const char *path, struct error *error) {
    char *text = NULL;
    size_t size = 0;
    *t = (struct launch_testing){0};
    TRY(file_read(path, (size_t)1 << 24, &text, &size, error));
    enum status status = load_text(t, text, size, error);
    free(text);
    return status;
}

static bool is_loaded(enum status status, const struct error *error) {
    if (status != STATUS_OK) {
        TEST_FAIL("cannot load the kernels: %s", error_text(error, status));
    }
    return status == STATUS_OK;
}

bool launch_testing_open(struct launch_testing *t, const char *path) {
    struct error error = {0};
    return is_loaded(launch_testing_load(t, path, &error), &error);
}

bool launch_testing_open_text(struct launch_testing *t, const char *text) {
    struct error error = {0};
    *t = (struct launch_testing){0};
    return is_loaded(load_text(t, text, strlen(text), &error), &error);
}

void launch_testing_close(struct launch_testing *t) {
    simt_module_unload(t->module);
    simt_global_shadow_free(t->shadow);
    simt_memory_free(t->memory);
}

uint64_t launch_testing_upload(struct launch_testing *t, const void *host, size_t bytes) {
    uint64_t address = 0;
    EXPECT_OK(simt_memory_alloc(t->memory, bytes, 256, "cudaMalloc", &address));
    if (host != NULL) {
        memcpy(simt_memory_host(t->memory, address), host, bytes);
        simt_memory_mark(t->memory, address, bytes);
    }
    return address;
}

const void *launch_testing_result(const struct launch_testing *t, uint64_t address) {
    return simt_memory_host(t->memory, address);
}

static enum simt_check check_of(const struct testing_launch *launch) {
    return launch->sampled       ? SIMT_CHECK_BOUNDS | SIMT_CHECK_SAMPLED
           : launch->bounds_only ? SIMT_CHECK_BOUNDS
                                 : SIMT_CHECK_FULL;
}

bool launch_testing_run(struct launch_testing *t, const struct testing_launch *launch) {
    struct error error = {0};
    struct simt_launch l = {
        .module = t->module,
        .kernel = launch->kernel,
        .dynamic_shared_bytes = launch->shared,
        .parameters = launch->parameters,
        .textures = launch->textures,
        .cooperative = launch->cooperative,
        .check = check_of(launch),
        .global_shadow = t->shadow,
        .host_threads = launch->host_threads > 0 ? launch->host_threads : 1,
        .instruction_limit = launch->limit > 0 ? launch->limit : 4000000,
        .processors = launch->processors,
        .seed = launch->seed,
        .number = launch->number,
        .costs = launch->costs,
        .alone = launch->alone,
        .waited = launch->waited,
        .sites = launch->sites,
        .xray = launch->xray,
    };
    for (int axis = 0; axis < 3; axis++) {
        l.grid[axis] = launch->grid[axis] > 0 ? launch->grid[axis] : 1;
        l.threads[axis] = launch->threads[axis] > 0 ? launch->threads[axis] : 1;
        l.cluster[axis] = launch->cluster[axis];
    }
    enum status status = simt_launch_run(&l, &t->counters, &t->fault, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s", launch->kernel, error_text(&error, status));
        return false;
    }
    return t->fault.kind == SIMT_FAULT_NONE;
}

bool launch_testing_run_clean(struct launch_testing *t, const struct testing_launch *launch) {
    bool clean = launch_testing_run(t, launch);
    if (!clean && t->fault.kind != SIMT_FAULT_NONE) {
        char *message = launch_testing_message(&t->fault);
        TEST_FAIL("%s", message);
        free(message);
    }
    return clean;
}

bool launch_testing_block(struct launch_testing *t, const char *kernel, uint32_t threads,
                          const void *parameters) {
    return launch_testing_run(
        t, LAUNCH(.kernel = kernel, .threads = {threads}, .parameters = parameters));
}

bool launch_testing_block_clean(struct launch_testing *t, const char *kernel, uint32_t threads,
                                const void *parameters) {
    return launch_testing_run_clean(
        t, LAUNCH(.kernel = kernel, .threads = {threads}, .parameters = parameters));
}

void launch_testing_run_printing(struct launch_testing *t, const struct testing_launch *launch,
                                 char *text, size_t size) {
    char path[512];
    test_temporary_path("printed.txt", path, sizeof path);
    fflush(stdout);
    int saved = dup(STDOUT_FILENO);
    FILE *file = freopen(path, "w", stdout);
    bool clean = file != NULL && launch_testing_run(t, launch);
    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    if (!clean) {
        TEST_FAIL("%s: %s", launch->kernel, t->fault.text);
    }
    FILE *back = fopen(path, "r");
    size_t used = back != NULL ? fread(text, 1, size - 1, back) : 0;
    text[used] = '\0';
    if (back != NULL) {
        fclose(back);
    }
}

char *launch_testing_message(const struct simt_fault *fault) {
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (stream != NULL) {
        simt_fault_print(fault, stream);
        fclose(stream);
    }
    return text;
}
