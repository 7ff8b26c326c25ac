/**
 * @file many_gpus.h
 * @brief Contract of lab 15: several GPUs that work on one token, or on one batch.
 *
 * Every rank has a GPU of its own and runs the same code. many_all_reduce() adds up what all ranks
 * have. many_cut() says which part of a matrix a rank has in tensor parallel decoding, and
 * many_linear() is the product whose parts must be added up over the ranks: the exchange inside the
 * decoder's step. Peers' memory is reached by ordinary pointers (common/ranks/comm.h).
 *
 * Every rank makes the same calls in the same order, each on a stream of its own GPU. A call starts
 * its work and does not wait for the stream, but see struct many_step.
 */
#ifndef WARPBOOK_LABS_15_MANY_GPUS_MANY_GPUS_H_
#define WARPBOOK_LABS_15_MANY_GPUS_MANY_GPUS_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/device/device.h"
#include "common/nn/dtype.h"
#include "common/ranks/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Largest number of elements of an all-reduce. */
#define MANY_MAX_COUNT ((size_t)1 << 30)

/** Largest N of many_linear(). */
#define MANY_MAX_N ((size_t)1 << 14)

/**
 * Symmetric scratch memory of a rank, 16 MiB. It is zeros before the first call; later a call finds
 * what the calls before it have left there, on all ranks.
 */
#define MANY_WORKSPACE_BYTES ((size_t)16 << 20)

/**
 * @brief data = the sum of all ranks' data, in place, on every rank.
 *
 * Element i becomes data[0][i] + data[1][i] + ... + data[ranks - 1][i]. Sums are computed in fp32;
 * bf16 is rounded at the end, or after each addition. All ranks get the SAME BITS, and so does
 * every run: a rank may add in any order that does not depend on time, if all ranks use the same
 * order for the same element.
 *
 * The call is on a stream of the rank's own GPU. Work that the rank submitted to that stream before
 * is done when its data is read. Other ranks may be early or late by any time: data of a rank that
 * has not come yet must not be read or written, and a rank that returns from the stream may write
 * its data again at once.
 */
struct many_all_reduce {
    size_t count;               /**< elements, 1 .. MANY_MAX_COUNT; bytes are a multiple of 16 */
    enum nn_dtype dtype;        /**< NN_F32 or NN_BF16 */
    void *data[COMM_MAX_RANKS]; /**< (count) of each rank, as this rank reaches them; 16-byte
                                     aligned, at the same offset of symmetric memory */
    const struct comm_memory *workspace; /**< MANY_WORKSPACE_BYTES, the same for all calls */
};

/** @return STATUS_OK; STATUS_INVALID_ARGUMENT as many_all_reduce_check(); STATUS_DEVICE */
MUST_CHECK enum status many_all_reduce(struct comm *comm, const struct many_all_reduce *reduce,
                                       device_stream stream, struct error *error);

/** Matrices of a decoder's layer. All are (N, K), row-major: N results from K inputs. */
enum many_matrix {
    MANY_Q,    /**< (NH*HS, C): head h is rows h*HS .. (h + 1)*HS - 1 */
    MANY_K,    /**< (KVH*HS, C) */
    MANY_V,    /**< (KVH*HS, C) */
    MANY_OUT,  /**< (C, NH*HS) */
    MANY_GATE, /**< (hidden, C) */
    MANY_UP,   /**< (hidden, C) */
    MANY_DOWN, /**< (C, hidden) */
    MANY_MATRICES
};

/** Sizes of a decoder. */
struct many_shape {
    size_t C, hidden; /**< channels, channels inside the feed-forward */
    size_t NH, KVH;   /**< query heads, a multiple of key heads */
    size_t HS;        /**< head size; C need not be NH * HS */
};

/** A rank's part of a matrix (N, K), and of its bias (N). */
struct many_part {
    size_t row, rows;       /**< first row, number of rows */
    size_t column, columns; /**< first column, number of columns */
    size_t bias,
        biases; /**< first bias and number of biases that this rank adds; 0: it adds none */
};

/**
 * @brief Which part of a matrix a rank has.
 *
 * Together the ranks have each weight exactly once. A rank has whole heads: the query heads that
 * share a key head are on the rank of that key head, and the rank's KV cache holds its key heads
 * alone. Of gate, up and down it has the same channels. Nothing has to be exchanged between q, k,
 * v and out, nor between gate, up and down; behind out and down the results of all ranks are added
 * up, so the ranks together add each bias exactly once.
 *
 * A rank may have nothing of a matrix (rows, columns and biases are 0), but then it has nothing to
 * do either. Host code. KVH and hidden are multiples of the number of ranks.
 */
void many_cut(enum many_matrix matrix, const struct many_shape *shape, int rank, int ranks,
              struct many_part *part);

/**
 * @brief x += W in + bias, where every rank has some of W's columns and the inputs that belong to
 *        them: x += (sum over the ranks r of weight_r in_r) + (sum of the biases that ranks have).
 *
 * Before the call x has the same bits on all ranks, and behind it, too. Pointers are memory of the
 * rank's own GPU, 16-byte aligned, but for the workspace. Nothing overlaps. Accumulation is fp32;
 * partial results travel as fp32.
 */
struct many_linear {
    size_t N, K;         /**< N: a multiple of 4, at most MANY_MAX_N; K: columns of this rank */
    enum nn_dtype dtype; /**< of weight: NN_F32, NN_F16 or NN_BF16; K elements are a multiple of 16
                              bytes; 0: the rank has no columns, and no bias */
    const void *weight;  /**< (N, K) */
    const float *in;     /**< (K) */
    const float *bias;   /**< (N), or NULL: this rank adds none */
    float *x;            /**< (N): the residual stream */
    const struct comm_memory *workspace; /**< as of many_all_reduce(), and shared with it */
};

/** @return STATUS_OK; STATUS_INVALID_ARGUMENT as many_linear_check(); STATUS_DEVICE */
MUST_CHECK enum status many_linear(struct comm *comm, const struct many_linear *linear,
                                   device_stream stream, struct error *error);

struct decoder; /* of lab 10's solution: a rank's activations and cache */

/** The functions of one step of a ladder. */
struct many_functions {
    enum status (*all_reduce)(struct comm *comm, const struct many_all_reduce *reduce,
                              device_stream stream, struct error *error);
    enum status (*linear)(struct comm *comm, const struct many_linear *linear, device_stream stream,
                          struct error *error);
    /**
     * A whole token by other means, from the embedding of the decoder's io.token on to its logits;
     * NULL: by `linear` and lab 10's kernels.
     */
    enum status (*token)(struct comm *comm, const struct decoder *decoder,
                         const struct comm_memory *workspace, size_t position, struct error *error);
};

/** A step that the bench shows. */
struct many_step {
    const char *name; /**< "v2_peer_copies" */
    struct many_functions functions;
    /**
     * Whether calls only submit work: they can be recorded in a CUDA graph. The starter's wait for
     * the GPU and for the other ranks, so a decoder launches everything one by one.
     */
    bool recordable;
};

/** @return your steps; the last one counts. @p count receives how many there are. */
const struct many_step *many_ladder(size_t *count);

/** Given: may a call be so? @return STATUS_OK, or STATUS_INVALID_ARGUMENT with a line */
MUST_CHECK enum status many_all_reduce_check(const struct comm *comm,
                                             const struct many_all_reduce *reduce,
                                             struct error *error);
MUST_CHECK enum status many_linear_check(const struct comm *comm, const struct many_linear *linear,
                                         struct error *error);
/** Given: can a model be cut so? */
MUST_CHECK enum status many_shape_check(const struct many_shape *shape, int ranks,
                                        struct error *error);

#ifdef __cplusplus
}
#endif

#endif
