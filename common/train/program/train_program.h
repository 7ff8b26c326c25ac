/**
 * @file train_program.h
 * @brief The program `train`, and the engines that it may run on: a table that a lab fills in.
 */
#ifndef WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_PROGRAM_H_
#define WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_PROGRAM_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/nn/dtype.h"
#include "common/ranks/processes.h"
#include "common/train/train_engine.h"
#include "common/train/train_peers.h"

/** A description of the device. */
struct train_where {
    char name[320]; /**< "NVIDIA H200", "simt:h200", "the CPU, in fp32" */
    bool modelled;  /**< simt: measured times mean nothing */
    /** The device's clock in seconds, after it has finished all work; NULL: this machine's. */
    double (*now)(void);
};

struct train_place {
    const char *name; /**< value of --device: "gpu", "cpu", "reference" */
    /**
     * Makes the engine. @param dtype NN_F32 or NN_BF16
     * @return STATUS_NO_DEVICE: --device auto tries the next row
     */
    enum status (*create)(struct train_engine *engine, enum nn_dtype dtype,
                          struct train_where *where, struct error *error);
};

/** How a program trains on several GPUs; both functions are collective. */
struct train_exchange {
    void *context;
    /** Chooses this rank's GPU, before anything else is done on it. */
    enum status (*choose)(void *context, struct ranks *ranks, struct error *error);
    /** Makes the exchange of a model on this engine; it lives until the program ends. */
    enum status (*connect)(struct train_peers *peers, void *context,
                           const struct train_engine *engine, struct error *error);
};

struct train_places {
    const struct train_place *table; /**< the best first, the reference last */
    size_t count;
    const struct train_exchange *exchange; /**< NULL: one GPU only */
};

/** Training in fp32 on all cores. */
enum status train_place_cpu(struct train_engine *engine, enum nn_dtype dtype,
                            struct train_where *where, struct error *error);

/** The reference in double, for comparison. */
enum status train_place_reference(struct train_engine *engine, enum nn_dtype dtype,
                                  struct train_where *where, struct error *error);

/** The last rows of every table. */
#define TRAIN_PLACES_CPU                   \
    {"cpu", train_place_cpu}, {            \
        "reference", train_place_reference \
    }

/** @return STATUS_OK, or STATUS_INVALID_ARGUMENT: neither "auto" nor a name of the table */
MUST_CHECK enum status train_places_know(const struct train_places *places, const char *name,
                                         struct error *error);

/** Makes the engine with this name, or, for "auto", the first one that is available. */
MUST_CHECK enum status train_places_create(const struct train_places *places, const char *name,
                                           enum nn_dtype dtype, struct train_engine *engine,
                                           struct train_where *where, struct error *error);

/** The program's main(). @return its exit status */
int train_main(int argc, char **argv, const struct train_places *places);

#endif
