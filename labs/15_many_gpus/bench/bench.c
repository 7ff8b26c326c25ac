/**
 * @file bench.c
 * @brief Lab 15's bench: the steps of the ladder, alone and in a Llama2 that is cut over the GPUs.
 *
 * Built once for the learner's ladder and once for the solution's. Each row is appended to
 * results/bench.jsonl.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "common/bench/bench_program.h"
#include "common/bench/device/device_bench.h"
#include "labs/15_many_gpus/bench/many_bench.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static enum status check(void *argument, struct error *error) {
    const struct many_setup *s = argument;
    if (s->ranks < 2 || s->ranks > COMM_MAX_RANKS) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--ranks %d: from 2 to %d", s->ranks,
                         COMM_MAX_RANKS);
    }
    return s->model == NULL || strcasecmp(s->model, "1.1b") == 0 || strcasecmp(s->model, "7b") == 0
               ? STATUS_OK
               : error_set(error, STATUS_INVALID_ARGUMENT, "--model is '1.1b' or '7b', not '%s'",
                           s->model);
}

/* NVIDIA's own does not run on simt. */
static bool finds_nccl(bool modelled) {
    const char *file = getenv("WARPBOOK_NCCL");
    bool named = file != NULL && file[0] != '\0';
    void *library = named || !modelled ? dlopen(named ? file : "libnccl.so.2", RTLD_NOW) : NULL;
    return library != NULL && dlclose(library) == 0;
}

static enum status open(struct many_setup *s, struct error *error) {
    char devices[16];
    snprintf(devices, sizeof devices, "%d", s->ranks);
    setenv("SIMT_DEVICES", devices, 0); /* on simt there are as many GPUs as ranks */
    TRY(device_open(error));
    TRY(device_properties(&s->gpu, error));
    s->nccl = finds_nccl(s->gpu.modelled);
    if (s->gpu.modelled && s->model != NULL) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--model: simt takes hours for it; leave it out");
    }
    int count = comm_devices();
    return count >= s->ranks
               ? STATUS_OK
               : error_set(error, STATUS_NO_DEVICE,
                           "%d ranks need as many GPUs that reach each other's memory; there %s "
                           "%d; %s",
                           s->ranks, count == 1 ? "is" : "are", count,
                           s->gpu.modelled ? "leave SIMT_DEVICES out, or set it to the ranks"
                                           : "build with --config=simt to run without");
}

static enum status run(void *argument, struct error *error) {
    struct many_setup *s = argument;
    TRY(open(s, error));
    printf("%s: %s %s, %d GPUs; NCCL %s\n", WARPBOOK_SUBJECT, device_bench_verb(&s->gpu),
           s->gpu.name, s->ranks,
           s->nccl ? "beside them" : "was not found (name libnccl.so.2 in $WARPBOOK_NCCL)");
    if (s->model == NULL) {
        TRY(many_bench_sums(s, error));
    }
    if (!s->sums) {
        TRY(many_bench_decode(s, error));
    }
    bench_print_recorded();
    return STATUS_OK;
}

int main(int argc, char **argv) {
    struct many_setup setup = {.ranks = 2};
    const struct flag list[] = {
        {"ranks", 'r', FLAG_INT, &setup.ranks, "N", "GPUs: 2 to 8"},
        {"model", 'm', FLAG_STRING, &setup.model, "NAME",
         "only time per token of this shape: '1.1b', '7b'"},
        {"sums", 's', FLAG_SWITCH, &setup.sums, NULL, "only all-reduces"},
        {"quick", 'q', FLAG_SWITCH, &setup.quick, NULL, "fewer sizes, a small model"},
    };
    const struct flags flags = {
        "bench",
        "",
        "compares the steps of lab 15 with each other and with NCCL, alone and in a Llama2 cut "
        "over "
        "several GPUs",
        list,
        COUNT(list),
        "Without flags: all-reduces from 8 KiB on, and time per token of Llama2 1.1B and 7B (on "
        "simt "
        "of a small\none), random weights, in bf16.",
    };
    const struct bench_program program = {&flags, check, run};
    return bench_program_main(&program, argc, argv, &setup);
}
