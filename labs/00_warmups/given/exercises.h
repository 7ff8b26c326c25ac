/**
 * @file exercises.h
 * @brief The table of exercises: what `check`, the grader and the handout's tables go by.
 *
 * An exercise is one row of EXERCISES, a function try_NAME() in one of the files try_*.c, the
 * learner's file labs/00_warmups/NAME.cu, which defines NAME(), and its starter in starters/.
 */
#ifndef WARPBOOK_LABS_00_WARMUPS_GIVEN_EXERCISES_H_
#define WARPBOOK_LABS_00_WARMUPS_GIVEN_EXERCISES_H_

#include <stddef.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What an exercise needs besides a GPU or simt. */
enum exercise_needs {
    NEEDS_NOTHING,
    NEEDS_SM80,      /**< code for compute capability 8.0 or later */
    NEEDS_SIMT,      /**< simt's checks: a GPU often says nothing of the fault */
    NEEDS_SIMT_SM80, /**< both */
    NEEDS_SM90,      /**< code for compute capability 9.0 or later */
    NEEDS_HOPPER,    /**< a GPU of compute capability 9.0, and no other */
};

/** Every exercise in its order: name, idea, labs that use it, what it needs, what to look at. */
#define EXERCISES(X)                                                                               \
    X(w01_map, "one thread an element, and a guard", "02", NEEDS_NOTHING,                          \
      "which element belongs to thread 0 of block 1? which threads have none?")                    \
    X(w02_index_2d, "row and column from x and y", "02 04", NEEDS_NOTHING,                         \
      "which of x and y counts along a row? where would a thread beyond the last column write?")   \
    X(w03_coalescing, "neighbouring threads, neighbouring addresses", "02 04 05", NEEDS_NOTHING,   \
      "which elements do threads 0 and 1 copy in the same round?")                                 \
    X(w04_grid_stride, "more elements than threads", "02 05 11", NEEDS_NOTHING,                    \
      "which element does thread 0 take after its first one?")                                     \
    X(w05_vector_loads, "four floats with one instruction", "02 04 05 09", NEEDS_NOTHING,          \
      "how many load instructions does one thread execute?")                                       \
    X(w06_error_check, "a launch that fails is silent", "02 03", NEEDS_NOTHING,                    \
      "who asks CUDA whether the launch worked?")                                                  \
    X(w07_shared_tile, "a tile in shared memory, and its two barriers", "04 07", NEEDS_NOTHING,    \
      "the drawing: load, barrier, use, barrier")                                                  \
    X(w08_padded_transpose, "banks, and one column more", "04 07", NEEDS_NOTHING,                  \
      "in which banks do the 32 elements of one column of the tile lie?")                          \
    X(w09_tiled_matmul, "a matmul by tiles", "04 06 08", NEEDS_NOTHING,                            \
      "which row and which column of A, and of B, does thread (x, y) load in step k?")             \
    X(w10_warp_reduction, "adding up a warp from register to register", "02 05 09", NEEDS_NOTHING, \
      "which value does lane 0 add in each step?")                                                 \
    X(w11_warp_broadcast, "one lane's value for all", "05 07", NEEDS_NOTHING,                      \
      "whose value does lane 5 subtract?")                                                         \
    X(w12_block_reduction, "adding up a block as a tree", "02 05 11", NEEDS_NOTHING,               \
      "how many threads add in each round, and which of them wait?")                               \
    X(w13_row_reduction, "one warp, one row", "05 06 08 09 11", NEEDS_NOTHING,                     \
      "which columns does lane 0 look at? how do the lanes combine what they have?")               \
    X(w14_scan, "running sums", "10", NEEDS_NOTHING,                                               \
      "which element is added to element 5 in each step?")                                         \
    X(w15_histogram, "counting with atomics", "10", NEEDS_NOTHING,                                 \
      "who adds to the block's bins, and who to those in device memory?")                          \
    X(w16_online_softmax, "the sum of e^(x - max) in one pass", "05 07 09", NEEDS_NOTHING,         \
      "what happens to the sum so far when a larger x comes?")                                     \
    X(w17_occupancy, "how many blocks fit on a multiprocessor", "04 07", NEEDS_NOTHING,            \
      "how many registers has a multiprocessor, and how many does a block take?")                  \
    X(w18_streams, "two streams that wait for each other", "03 10", NEEDS_NOTHING,                 \
      "the drawing: which stream records each event, and which waits for it?")                     \
    X(w19_events, "how long a kernel takes", "03", NEEDS_NOTHING,                                  \
      "what has happened on the GPU when a launch returns to the host?")                           \
    X(w20_template_launch, "a kernel for each size", "04 06 07", NEEDS_NOTHING,                    \
      "which kernel is launched for which width?")                                                 \
    X(w21_inline_ptx, "one instruction by name", "04 07", NEEDS_NOTHING,                           \
      "the example: which operand is the output?")                                                 \
    X(w22_code_version, "which code is there", "04 07", NEEDS_NOTHING,                             \
      "the GPU's number is not the code's: what does cudaFuncGetAttributes() tell?")               \
    X(w23_cp_async, "a copy that runs beside the calculation", "04 07", NEEDS_SM80,                \
      "the drawing: start, close, wait, barrier")                                                  \
    X(w24_one_mma, "one product on a tensor core", "07 08 11 12", NEEDS_SM80,                      \
      "the drawing of B: which column does lane 4 g + p have, and which two pairs along k?")       \
    X(w25_ldmatrix, "fragments from shared memory", "07 12", NEEDS_SM80,                           \
      "which of the four matrices has rows of lane 8? and of lane 16?")                            \
    X(w26_swizzle, "a tile for rows and columns", "07 12", NEEDS_NOTHING,                          \
      "the banks of piece 0 in rows 0 to 7")                                                       \
    X(w27_tma_box, "a box by the TMA, and its mbarrier", "12", NEEDS_SM90,                         \
      "how many bytes has the box?")                                                               \
    X(w28_one_wgmma, "one product of a warpgroup", "07 12", NEEDS_HOPPER,                          \
      "the drawing of A: how far is it to the group below, and to the one on the right?")          \
    X(f01_triple, "find the fault", "02", NEEDS_SIMT, "simt's lines")                              \
    X(f02_reverse, "find the fault", "04", NEEDS_SIMT, "simt's lines")                             \
    X(f03_rounds, "find the fault", "04 07", NEEDS_SIMT, "simt's lines")                           \
    X(f04_any_length, "find the fault", "05", NEEDS_SIMT, "simt's lines")                          \
    X(f05_neighbours, "find the fault", "04", NEEDS_SIMT, "simt's lines")                          \
    X(f06_copy_ahead, "find the fault", "04 07", NEEDS_SIMT_SM80, "simt's lines")                  \
    X(f07_row_sums, "find the fault", "05", NEEDS_SIMT, "simt's lines")                            \
    X(f08_search, "find the fault", "10", NEEDS_SIMT, "simt's lines")

/** EXERCISE_w01_map and so on, and how many there are. */
enum exercise_number {
#define EXERCISE_NUMBER(name, idea, labs, needs, look) EXERCISE_##name,
    EXERCISES(EXERCISE_NUMBER)
#undef EXERCISE_NUMBER
        EXERCISE_COUNT
};

struct trial;

struct exercise {
    const char *name; /**< "w01_map" */
    const char *idea; /**< in a few words */
    const char *labs; /**< that use it: "02 04" */
    enum exercise_needs needs;
    const char *look;                 /**< what to look at when the result is wrong */
    void (*run)(struct trial *trial); /**< calls the learner's function and judges; see trial.h */
};

/** @return exercise @p number of EXERCISE_COUNT. */
const struct exercise *exercise_at(enum exercise_number number);

/**
 * @brief Finds an exercise by its name, its beginning or its number: "w07_shared_tile", "w07", "7",
 *        "f3".
 */
MUST_CHECK enum status exercise_find(const char *text, enum exercise_number *number,
                                     struct error *error);

#ifdef __cplusplus
}
#endif

#endif
