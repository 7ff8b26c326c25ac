/**
 * @file tries.h
 * @brief Declares try_NAME() for every exercise.
 */
#ifndef WARPBOOK_LABS_00_WARMUPS_GIVEN_TRIES_H_
#define WARPBOOK_LABS_00_WARMUPS_GIVEN_TRIES_H_

#include "labs/00_warmups/given/trial.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DECLARE_TRY(name, idea, labs, needs, look) void try_##name(struct trial *t);
EXERCISES(DECLARE_TRY)
#undef DECLARE_TRY

/** A vector in and one out, which is what most exercises have. */
struct vectors {
    const float *x; /**< host, random */
    float *d_x, *d_y;
    double *want; /**< host, zeros: to be filled in */
};

/** @param inputs, outputs how many elements of x, of y */
struct vectors vectors_create(struct trial *t, int inputs, int outputs);

#ifdef __cplusplus
}
#endif

#endif
