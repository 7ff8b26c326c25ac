/**
 * @file internal.h
 * @brief Shared by the files of the given engine: its context, and its scratch memory.
 */
#ifndef WARPBOOK_LABS_11_TRAINING_GIVEN_INTERNAL_H_
#define WARPBOOK_LABS_11_TRAINING_GIVEN_INTERNAL_H_

#include <assert.h>
#include <cuda_runtime_api.h>

#include "labs/04_sgemm/sgemm.h"
#include "labs/06_fused_epilogues/fused_epilogues.h"
#include "labs/11_training/given/engine.h"
#include "labs/11_training/given/given.h"
#include "labs/12_tensor_cores/tensor_cores.h"

/** Of fused_epilogues(), sgemm() and gemm16(), which never run side by side; zeros come first. */
#define PRODUCT_BYTES FUSED_WORKSPACE_BYTES
static_assert(FUSED_WORKSPACE_BYTES - FUSED_ZERO_BYTES >= SGEMM_WORKSPACE_BYTES &&
                  FUSED_WORKSPACE_BYTES - FUSED_ZERO_BYTES >= GEMM16_WORKSPACE_BYTES,
              "behind lab 06's zeros is room for the others");

/* Staging buffers for copies to the GPU, so that the host does not wait for them. */
enum { SLOTS = 4, SLOT_BYTES = 1 << 20 };

struct slot {
    void *memory; /* page-locked, (SLOT_BYTES) */
    device_event copied;
    bool used;
};

/* at_once.c: the last work that was launched at once. */
struct training_replay {
    cudaGraphExec_t executable; /* NULL: none yet */
    bool impossible;            /* a function did what cannot be recorded */
    bool recording;
    size_t wanted;   /* bytes of scratch memory that the recording lacked */
    size_t launched; /* graphs, of all calls */
};

struct training {
    enum nn_dtype type; /* of activations */
    struct training_functions functions;
    device_stream stream;
    void *products; /* PRODUCT_BYTES */
    void *norms;    /* TRAINING_WORKSPACE_BYTES */
    void *scratch;
    size_t scratch_bytes;
    struct slot slots[SLOTS];
    size_t next_slot;
    struct training_replay replay;
    struct error failed; /* an operator's last error, until synchronize() reports it */
};

/** The stream that an operator's work goes to, and the error that it reports to. */
static inline struct given_call training_call(struct training *t) {
    return (struct given_call){t->type, t->stream, &t->failed};
}

/** Buffers in the scratch memory, 256-byte aligned: first all are added, then it is reserved. */
struct scratch_layout {
    size_t bytes[5], count;
};

/** Adds a buffer. @return its index */
size_t scratch_add(struct scratch_layout *layout, size_t bytes);

/** @return a buffer's address; only after scratch_reserve(). */
void *scratch_at(const struct training *t, const struct scratch_layout *layout, size_t buffer);

/** Makes sure that there is as much scratch memory; where it grows, its contents are lost. */
MUST_CHECK enum status scratch_need(struct training *t, size_t bytes);
MUST_CHECK enum status scratch_reserve(struct training *t, const struct scratch_layout *layout);

/** As train_engine.h's at_once. */
enum status training_at_once(void *context, train_work *work, void *argument);
void training_replay_free(struct training *t);

/** As train_engine.h's linear and linear_backward. */
enum status training_linear(void *context, void *out, const void *in, const void *weight,
                            const void *bias, size_t M, size_t N, size_t K);
enum status training_linear_backward(void *context, void *din, const void *add, void *dweight,
                                     void *dbias, const void *dout, const void *in,
                                     const void *weight, size_t M, size_t N, size_t K);

#endif
