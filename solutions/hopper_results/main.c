/*
 * results [--compare FILE] [--only BEGINNING]
 *
 * Runs the course's 16-bit kernels, and prints a line a result; with --compare only those that
 * are not as recorded, and a sum at the end. Needs a Hopper GPU, or simt as one. Exit status: 0; 1
 * for a result that is not as recorded, a call that fails, or bad arguments.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/device/device.h"
#include "solutions/hopper_results/results.h"

static enum status run_all(struct results *results, struct error *error) {
    struct device_properties gpu = {0};
    TRY(device_open(error));
    TRY(device_properties(&gpu, error));
    if (gpu.code / 10 != 9) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "needs a Hopper GPU; here is %s: on simt, set "
                         "SIMT_GPU=h100",
                         gpu.name);
    }
    TRY(results_of_products(results, error));
    TRY(results_of_attention(results, error));
    TRY(results_of_encoder(results, error));
    TRY(results_of_decoder(results, error));
    return results_of_training(results, error);
}

/* If these differ, so do the inputs. */
static void take_inputs(struct results *results) {
    float values[1000];
    struct rng rng = rng_create(1);
    rng_fill_normal(&rng, values, sizeof values / sizeof *values, 1.0f);
    if (results_want(results, "00 inputs")) {
        results_take(results, "00 inputs", NN_F32, values, sizeof values / sizeof *values, 2.0);
    }
}

int main(int argc, char **argv) {
    struct results results = {.only = ""};
    struct error error = {0};
    enum status status = STATUS_OK;
    for (int n = 1; n < argc && status == STATUS_OK; n += 2) {
        if (n + 1 < argc && strcmp(argv[n], "--only") == 0) {
            results.only = argv[n + 1];
        } else if (n + 1 < argc && strcmp(argv[n], "--compare") == 0) {
            status = results_read(&results, argv[n + 1], &error);
        } else {
            status = error_set(&error, STATUS_INVALID_ARGUMENT,
                               "usage: results [--compare FILE] [--only BEGINNING]");
        }
    }
    if (status == STATUS_OK) {
        take_inputs(&results);
        status = run_all(&results, &error);
    }
    size_t left = results_left(&results);
    if (results.recorded != NULL) {
        printf("%zu equal, %zu within their bounds (at most %.3g roundings), %zu not, %zu of the "
               "record left out\n",
               results.equal, results.near, results.furthest, results.wrong, left);
    }
    if (status != STATUS_OK) {
        fprintf(stderr, "results: %s\n", error_text(&error, status));
    }
    free(results.recorded);
    return status == STATUS_OK && results.wrong + left == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
