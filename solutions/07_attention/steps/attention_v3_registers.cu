/**
 * @file attention_v3_registers.cu
 * @brief fp32: a thread has several queries by several keys, then several queries by channels.
 *
 * Changes since v2: 128 queries a block instead of 16; register tiles of 8 x 8 for
 * both products; loads of 16 bytes, from memory by cp.async while the other
 * product runs; no bank conflicts; 2^x with the scale folded in. See float_tile.cuh.
 *
 * Why: relieves shared memory, which v2 asks twice for each FMA. 16 loads serve
 * 256 FMAs, so that the FMA units are the limit.
 *
 * Measured, H200, 2026-11-21, 16 texts of 512, 12 heads of 64: 0.3545 ms, 36.4 TFLOP/s
 * (v2 2.467). FMA units busy 60%, an instruction issued in 70% of the cycles.
 *
 * v2 does fp16 and bf16.
 */
#include "solutions/07_attention/steps/float_tile.cuh"

/* Whether two blocks of a tile fit into a multiprocessor's shared memory, of which a block may ask
   for all but 1 KiB. */
template <typename TILE> static bool two_fit(const struct gpu_limits &gpu) {
    return 2 * TILE::BYTES <= gpu.shared_bytes;
}

/* Heads up to 64: the tallest tile of queries of which two blocks fit on a multiprocessor, so that
   one computes while the other waits, and that leaves no multiprocessor idle. With 32 keys a tile,
   that are 128 queries on an A100, 64 on an RTX 3090 or 4090, 32 on a T4. */
template <int KEYS>
static enum status attention_float_64(const struct attention_problem *p, float *lse, bool lengths,
                                      const struct gpu_limits &gpu, device_stream stream,
                                      struct error *error) {
    typedef float_tile<64, 8, KEYS> tall;
    typedef float_tile<64, 4, KEYS> low;
    typedef float_tile<64, 2, KEYS> lowest;
    const size_t each = KEYS == 64 ? 1 : 2; /* with one `tall` each, two of `low` are faster */
    if (two_fit<tall>(gpu) && fills(p, tall::QUERIES, gpu, each)) {
        return launch_float<tall>(p, lse, lengths, stream, error);
    }
    return two_fit<low>(gpu) && fills(p, low::QUERIES, gpu, 1)
               ? launch_float<low>(p, lse, lengths, stream, error)
               : launch_float<lowest>(p, lse, lengths, stream, error);
}

/* With the tallest tile of queries that suits this GPU and leaves no multiprocessor idle. Tiles of
   64 keys have fewer barriers than those of 32, but need an H200's shared memory. */
enum status attention_float(const struct attention_problem *p, float *lse, bool lengths,
                            device_stream stream, struct error *error) {
    struct gpu_limits gpu = gpu_limits();
    if (p->HS * p->NH == 0) {
        return STATUS_OK;
    }
    if (p->HS <= 64 && two_fit<float_tile<64, 8, 64>>(gpu)) {
        return attention_float_64<64>(p, lse, lengths, gpu, stream, error);
    }
    if (p->HS <= 64 && float_tile<64, 2, 32>::BYTES <= gpu.shared_bytes) {
        return attention_float_64<32>(p, lse, lengths, gpu, stream, error);
    }
    if (p->HS > 64 && float_tile<128, 4>::BYTES <= gpu.shared_bytes && fills(p, 64, gpu, 1)) {
        return launch_float<float_tile<128, 4>>(p, lse, lengths, stream, error);
    }
    if (p->HS > 64 && float_tile<128, 2>::BYTES <= gpu.shared_bytes) {
        return launch_float<float_tile<128, 2>>(p, lse, lengths, stream, error);
    }
    return lse == NULL ? attention_v2_flash(p, stream, error)
                       : error_set(error, STATUS_UNSUPPORTED,
                                   "attention: a block of this GPU has %zu bytes of shared memory, "
                                   "too few to keep sums of exponentials",
                                   gpu.shared_bytes);
}

enum status attention_v3_registers(const struct attention_problem *p, device_stream stream,
                                   struct error *error) {
    TRY(attention_check(p, error));
    return p->dtype == NN_F32 ? attention_float(p, NULL, false, stream, error)
                              : attention_v2_flash(p, stream, error);
}
