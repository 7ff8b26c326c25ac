/**
 * @file internal.h
 * @brief What the files of the given engine share: its context, and its scratch memory.
 */
#ifndef WARPBOOK_LABS_11_TRAINING_GIVEN_INTERNAL_H_
#define WARPBOOK_LABS_11_TRAINING_GIVEN_INTERNAL_H_

#include "common/gemm16/gemm16.h"
#include "labs/04_sgemm/sgemm.h"
#include "labs/11_training/given/engine.h"
#include "labs/11_training/given/given.h"

/** Of sgemm() and gemm16(), which never run side by side. */
#define PRODUCT_BYTES                                                       \
    (SGEMM_WORKSPACE_BYTES > GEMM16_WORKSPACE_BYTES ? SGEMM_WORKSPACE_BYTES \
                                                    : GEMM16_WORKSPACE_BYTES)

/* Host memory that copies to the GPU go through, so that nobody waits for them. */
enum { SLOTS = 4, SLOT_BYTES = 1 << 20 };

struct slot {
    void *memory; /* page-locked, (SLOT_BYTES) */
    device_event copied;
    bool used;
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
    struct error failed; /* what an operator reported last, until synchronize() says it */
};

/** Where an operator's work goes, and where it says what failed. */
static inline struct given_call training_call(struct training *t) {
    return (struct given_call){t->type, t->stream, &t->failed};
}

/** Parts of the scratch memory, 256-byte aligned; first counted, then handed out. */
struct scratch_parts {
    size_t bytes[5], count;
};

/** @return which part it is. */
size_t scratch_add(struct scratch_parts *parts, size_t bytes);

/** @return where a part lies, once scratch_need_parts() was called. */
void *scratch_at(const struct training *t, const struct scratch_parts *parts, size_t part);

/** Makes sure that there is so much scratch memory. What it held is lost where it grows. */
MUST_CHECK enum status scratch_need(struct training *t, size_t bytes);
MUST_CHECK enum status scratch_need_parts(struct training *t, const struct scratch_parts *parts);

/** As train_engine.h's linear and linear_backward. */
enum status training_linear(void *context, void *out, const void *in, const void *weight,
                            const void *bias, size_t M, size_t N, size_t K);
enum status training_linear_backward(void *context, void *din, const void *add, void *dweight,
                                     void *dbias, const void *dout, const void *in,
                                     const void *weight, size_t M, size_t N, size_t K);

#endif
