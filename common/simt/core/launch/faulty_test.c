/* Every mistake of testdata/faulty.cu is found, at its line, and said in words, which do not depend
 * on the number of host threads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/simt/core/launch/launch_testing.h"
#include "common/simt/core/launch/sample.h"
#include "common/testing/testing.h"

enum { MAX_BUFFERS = 2, MAX_NUMBERS = 2, MAX_WORDS = 4, ANY = -1 };

/* How often what several blocks do is tried with 1, 2, 4 ... host threads, and up to how many.
 * Under sanitizers, which look at memory and not at the order of blocks, and take ten times as
 * long: less. */
#ifdef __SANITIZE_ADDRESS__
enum { REPEATS = 2, HOST_THREADS_STEP = 8 };
#else
enum { REPEATS = 20, HOST_THREADS_STEP = 2 };
#endif

/* What a pointer among the parameters leads to. */
enum contents {
    NOTHING, /* no such parameter */
    INDICES, /* ints 0, 1, 2, ... */
    ZEROS,
    NEVER_WRITTEN,
    FREED, /* zeros, and freed before the launch */
    HOST,  /* memory of malloc() */
    NULL_POINTER
};

struct buffer {
    enum contents contents;
    size_t bytes;
};

/* A launch, and what must come of it. Pointers come before numbers among the parameters. */
struct mistake {
    const char *kernel;
    uint32_t grid, threads[2];
    size_t shared;
    struct buffer buffers[MAX_BUFFERS];
    int numbers[MAX_NUMBERS];
    enum simt_fault_kind kind;
    int block, thread[2];         /* ANY: not determined */
    const char *words[MAX_WORDS]; /* behind a ! what must not be said */
};

/* Two or three lines a mistake: what is launched, and what comes of it. */
/* clang-format off */

static const struct mistake beyond_global[] = {
    {"reads_one_past", 1, {64}, 0, {{ZEROS, 256}, {INDICES, 256}}, {0},
     SIMT_FAULT_OUT_OF_BOUNDS, 0, {63, 0},
     {"reads 4 bytes", "just past the end of", "index 64, the last one is 63", "if (i < n)"}},
    {"guard_lets_one_more_in", 1, {128}, 0, {{NEVER_WRITTEN, 400}}, {100},
     SIMT_FAULT_OUT_OF_BOUNDS, 0, {100, 0},
     {"writes 4 bytes", "just past the end of", "index 100, the last one is 99"}},
    {"guard_forgotten", 4, {256}, 0, {{NEVER_WRITTEN, 4000}, {ZEROS, 4000}}, {0},
     SIMT_FAULT_OUT_OF_BOUNDS, 3, {232, 0},
     {"just past the end of \"x\" (cudaMalloc, 4000 bytes)", "index 1000, the last one is 999",
      "!allocation"}},
    {"helper_is_called_with_a_wrong_index", 1, {64}, 0, {{NEVER_WRITTEN, 256}, {INDICES, 256}}, {0},
     SIMT_FAULT_OUT_OF_BOUNDS, 0, {63, 0},
     {"index 64, the last one is 63", "\n  called at ", "faulty.cu:"}},
    {"guard_with_size_of_grid", 2, {64}, 0, {{NEVER_WRITTEN, 400}}, {5},
     SIMT_FAULT_OUT_OF_BOUNDS, 1, {36, 0}, {"index 100, the last one is 99"}},
    {"neighbour_of_the_first", 2, {64}, 0, {{NEVER_WRITTEN, 512}, {INDICES, 512}}, {0},
     SIMT_FAULT_OUT_OF_BOUNDS, 0, {0, 0}, {"reads 4 bytes", "4 bytes before the start of", "index -1)"}},
    {"row_and_column_swapped", 1, {8, 4}, 0, {{NEVER_WRITTEN, 128}}, {8},
     SIMT_FAULT_OUT_OF_BOUNDS, 0, {4, 0}, {"index 32, the last one is 31"}},
    {"count_taken_for_bytes", 1, {64}, 0, {{NEVER_WRITTEN, 64}}, {0},
     SIMT_FAULT_OUT_OF_BOUNDS, 0, {16, 0}, {"64 bytes)", "index 16, the last one is 15"}},
    {"bytes_one_past", 1, {32}, 0, {{NEVER_WRITTEN, 100}}, {100},
     SIMT_FAULT_OUT_OF_BOUNDS, 0, {4, 0}, {"writes 1 byte at", "index 100, the last one is 99"}},
    {"pairs_of_an_odd_array", 1, {32}, 0, {{NEVER_WRITTEN, 64}, {INDICES, 20}}, {5},
     SIMT_FAULT_OUT_OF_BOUNDS, 0, {2, 0},
     {"reads 8 bytes", "the last 4 of them lie past its end"}},
    {"read_only_one_past", 1, {33}, 0, {{NEVER_WRITTEN, 132}, {INDICES, 256}}, {0},
     SIMT_FAULT_OUT_OF_BOUNDS, 0, {32, 0}, {"index 64, the last one is 63"}},
    {"bin_too_many", 1, {32}, 0, {{ZEROS, 64}, {INDICES, 128}}, {0},
     SIMT_FAULT_OUT_OF_BOUNDS, 0, {16, 0}, {"updates 4 bytes", "index 16, the last one is 15"}},
    {"constants_overrun", 1, {32}, 0, {{NEVER_WRITTEN, 128}}, {0},
     SIMT_FAULT_OUT_OF_BOUNDS, 0, {4, 0},
     {"reads 4 bytes", "weights", "index 4, the last one is 3"}},
    {"device_variable_overrun", 1, {32}, 0, {{NOTHING, 0}}, {9},
     SIMT_FAULT_OUT_OF_BOUNDS, 0, {10, 0},
     {"writes 4 bytes", "totals", "index 10, the last one is 9"}},
    {"index_overflows", 1, {32}, 0, {{NEVER_WRITTEN, 4096}}, {46341, 46341},
     SIMT_FAULT_OUT_OF_BOUNDS, 0, {0, 0}, {"writes 4 bytes", "check the index"}},
    {"unsigned_counts_below_zero", 1, {1}, 0, {{NEVER_WRITTEN, 4}, {INDICES, 40}}, {10},
     SIMT_FAULT_OUT_OF_BOUNDS, 0, {0, 0},
     {"reads 4 bytes", "check the index", "index 4294967295 of allocation #", "which is index -1"}},
};

static const struct mistake wild_pointers[] = {
    {"null_pointer", 1, {32}, 0, {{NULL_POINTER, 0}}, {0},
     SIMT_FAULT_OUT_OF_BOUNDS, 0, {0, 0}, {"writes 4 bytes", "null pointer"}},
    {"pointer_of_the_host", 1, {32}, 0, {{HOST, 128}, {NEVER_WRITTEN, 128}}, {0},
     SIMT_FAULT_OUT_OF_BOUNDS, 0, {0, 0}, {"reads 4 bytes", "not device memory", "host"}},
    {"table_of_null_pointers", 1, {8, 2}, 0, {{NEVER_WRITTEN, 64}, {ZEROS, 16}}, {0},
     SIMT_FAULT_OUT_OF_BOUNDS, 0, {0, 0}, {"reads 4 bytes", "null pointer"}},
    {"freed_input", 1, {32}, 0, {{NEVER_WRITTEN, 128}, {FREED, 128}}, {0},
     SIMT_FAULT_FREED, 0, {0, 0}, {"reads 4 bytes", "which was freed", "cudaFree()"}},
    {"freed_output", 2, {32}, 0, {{FREED, 128}}, {0},
     SIMT_FAULT_FREED, 0, {0, 0}, {"writes 4 bytes", "which was freed", "cudaFree()"}},
};

static const struct mistake misaligned[] = {
    {"misaligned_float4", 1, {8}, 0, {{NEVER_WRITTEN, 128}, {INDICES, 256}}, {0},
     SIMT_FAULT_MISALIGNED, 0, {0, 0},
     {"reads 16 bytes", "not a multiple of 16", "4 bytes into", "float4"}},
    {"misaligned_float2", 1, {8}, 0, {{NEVER_WRITTEN, 256}}, {0},
     SIMT_FAULT_MISALIGNED, 0, {0, 0}, {"writes 8 bytes", "not a multiple of 8"}},
    {"misaligned_double", 1, {8}, 0, {{NEVER_WRITTEN, 64}, {INDICES, 256}}, {12},
     SIMT_FAULT_MISALIGNED, 0, {0, 0}, {"reads 8 bytes", "not a multiple of 8", "12 bytes into"}},
    {"misaligned_int", 1, {8}, 0, {{NEVER_WRITTEN, 64}, {INDICES, 64}}, {0},
     SIMT_FAULT_MISALIGNED, 0, {1, 0}, {"reads 4 bytes", "not a multiple of 4", "1 byte into"}},
    {"misaligned_row_of_a_tile", 1, {33}, 0, {{NEVER_WRITTEN, 1024}}, {0},
     SIMT_FAULT_MISALIGNED, 0, {1, 0},
     {"reads 16 bytes", "at offset 148 of shared memory", "not a multiple of 16"}},
};

static const struct mistake beyond_shared_and_local[] = {
    {"shared_one_past", 1, {64}, 0, {{NEVER_WRITTEN, 256}}, {0},
     SIMT_FAULT_OUT_OF_BOUNDS, 0, {63, 0},
     {"writes 4 bytes at offset 256 of shared memory", "just past the end of", "256 bytes"}},
    {"shared_before_start", 1, {64}, 0, {{NEVER_WRITTEN, 256}}, {3},
     SIMT_FAULT_OUT_OF_BOUNDS, 0, {0, 0},
     {"reads 4 bytes", "4 bytes before the start of", "shared memory", "index -1)"}},
    {"more_threads_than_the_tile", 1, {256}, 0, {{NEVER_WRITTEN, 1024}}, {0},
     SIMT_FAULT_OUT_OF_BOUNDS, 0, {128, 0}, {"just past the end of", "512 bytes"}},
    {"dynamic_shared_too_small", 1, {96}, 380, {{NEVER_WRITTEN, 384}}, {0},
     SIMT_FAULT_OUT_OF_BOUNDS, 0, {95, 0}, {"just past the end of", "380 bytes"}},
    {"dynamic_shared_forgotten", 1, {64}, 0, {{NEVER_WRITTEN, 256}}, {0},
     SIMT_FAULT_OUT_OF_BOUNDS, 0, {0, 0},
     {"the block has none", "third number of <<<grid, threads, bytes>>>"}},
    {"shared_bin_too_many", 1, {32}, 0, {{NEVER_WRITTEN, 128}, {INDICES, 128}}, {0},
     SIMT_FAULT_OUT_OF_BOUNDS, 0, {16, 0},
     {"updates 4 bytes", "just past the end of", "64 bytes"}},
    {"first_array_into_the_second", 1, {32}, 0, {{NEVER_WRITTEN, 128}, {INDICES, 128}}, {0},
     SIMT_FAULT_OUT_OF_BOUNDS, 0, {31, 0},
     {"reads 4 bytes", "just past the end of low, which has 128 bytes"}},
    {"second_array_into_the_first", 1, {32}, 0, {{ZEROS, 128}, {INDICES, 128}}, {0},
     SIMT_FAULT_OUT_OF_BOUNDS, 0, {ANY, 0},
     {"reads 4 bytes, 4 bytes before the start of high in shared memory"}},
    {"bins_into_the_tile", 1, {64}, 0, {{NEVER_WRITTEN, 256}, {INDICES, 256}}, {0},
     SIMT_FAULT_OUT_OF_BOUNDS, 0, {16, 0},
     {"updates 4 bytes", "just past the end of bins, which has 64 bytes"}},
    {"dynamic_array_before_its_start", 1, {64}, 256, {{NEVER_WRITTEN, 256}, {INDICES, 256}}, {0},
     SIMT_FAULT_OUT_OF_BOUNDS, 0, {0, 0}, {"4 bytes before the start of dynamic"}},
    {"local_one_past", 1, {32}, 0, {{NEVER_WRITTEN, 128}}, {8, 3},
     SIMT_FAULT_OUT_OF_BOUNDS, 0, {0, 0},
     {"writes 4 bytes", "local memory", "just past the end of", "own arrays"}},
    {"local_before_start", 1, {32}, 0, {{NEVER_WRITTEN, 128}}, {2},
     SIMT_FAULT_OUT_OF_BOUNDS, 0, {2, 0},
     {"reads 4 bytes", "4 bytes before the start of", "local memory", "index -1)"}},
};

static const struct mistake never_written[] = {
    {"sum_never_set", 1, {32}, 0, {{NEVER_WRITTEN, 128}, {INDICES, 128}}, {0},
     SIMT_FAULT_UNINITIALISED, 0, {0, 0}, {"reads 4 bytes", "nothing has written", "cudaMemset"}},
    {"atomic_sum_never_set", 1, {32}, 0, {{NEVER_WRITTEN, 4}, {INDICES, 128}}, {0},
     SIMT_FAULT_UNINITIALISED, 0, {0, 0},
     {"updates 4 bytes", "nothing has written", "cudaMemset"}},
    {"neighbour_never_set", 1, {64}, 0, {{NEVER_WRITTEN, 256}, {NEVER_WRITTEN, 256}}, {0},
     SIMT_FAULT_UNINITIALISED, 0, {0, 0}, {"4 bytes into", "nothing has written"}},
    {"shared_count_never_set", 1, {32}, 0, {{NEVER_WRITTEN, 128}}, {0},
     SIMT_FAULT_UNINITIALISED, 0, {0, 0},
     {"offset 0 of shared memory", "no thread of the block has written"}},
    {"shared_bins_never_set", 1, {32}, 0, {{NEVER_WRITTEN, 128}, {INDICES, 128}}, {0},
     SIMT_FAULT_UNINITIALISED, 0, {0, 0},
     {"updates 4 bytes", "no thread of the block has written"}},
    {"halo_never_loaded", 1, {64}, 0, {{NEVER_WRITTEN, 256}, {INDICES, 256}}, {0},
     SIMT_FAULT_UNINITIALISED, 0, {0, 0}, {"offset 0 of shared memory"}},
    {"fewer_threads_than_the_tile", 1, {128}, 0, {{NEVER_WRITTEN, 4}, {INDICES, 1024}}, {0},
     SIMT_FAULT_UNINITIALISED, 0, {0, 0}, {"offset 512 of shared memory"}},
    {"writers_left_early", 1, {64}, 0, {{NEVER_WRITTEN, 256}, {INDICES, 256}}, {32},
     SIMT_FAULT_UNINITIALISED, 0, {32, 0},
     {"no thread of the block has written so far (it has 64 threads, 32 of them have returned)"}},
    {"local_never_filled", 1, {32}, 0, {{NEVER_WRITTEN, 128}}, {5, 3},
     SIMT_FAULT_UNINITIALISED, 0, {2, 0}, {"local array", "the thread has written nothing"}},
    {"local_count_not_zeroed", 1, {1}, 0, {{NEVER_WRITTEN, 32}, {INDICES, 64}}, {16},
     SIMT_FAULT_UNINITIALISED, 0, {0, 0}, {"local array", "the thread has written nothing"}},
};

static const struct mistake used[] = {
    {"undefined_branch", 1, {32}, 0, {{NEVER_WRITTEN, 128}}, {30},
     SIMT_FAULT_UNINITIALISED, 0, {30, 0}, {"reads 4 bytes at offset 120", "and decides by the value where to go on", "let a thread of the block write"}},
    {"undefined_index", 1, {64}, 0, {{NEVER_WRITTEN, 256}, {INDICES, 256}}, {0},
     SIMT_FAULT_UNINITIALISED, 0, {40, 0}, {"reads 4 bytes at offset 160", "and takes the value for an address"}},
    {"undefined_through_shared", 1, {32}, 0, {{NEVER_WRITTEN, 128}}, {31},
     SIMT_FAULT_UNINITIALISED, 0, {0, 0},
     {"stores an undefined value in global memory: it comes from thread (31,0,0)", "offset 124 of shared memory"}},
    {"undefined_through_a_call", 1, {32}, 0, {{NEVER_WRITTEN, 128}, {NEVER_WRITTEN, 128}}, {0},
     SIMT_FAULT_UNINITIALISED, 0, {0, 0}, {"reads 4 bytes at 0x", "and stores the value in global memory", "cudaMemset"}},
    {"undefined_through_a_shuffle", 1, {32}, 0, {{NEVER_WRITTEN, 4}}, {31},
     SIMT_FAULT_UNINITIALISED, 0, {0, 0}, {"it comes from thread (31,0,0), which reads 4 bytes at offset 124"}},
    {"undefined_vote", 1, {32}, 0, {{NEVER_WRITTEN, 128}}, {31},
     SIMT_FAULT_UNINITIALISED, 0, {0, 0}, {"stores an undefined value", "it comes from thread (31,0,0)"}},
    {"undefined_printed", 1, {32}, 0, {{NEVER_WRITTEN, 128}}, {31},
     SIMT_FAULT_UNINITIALISED, 0, {31, 0}, {"reads 4 bytes at offset 124", "and prints the value"}},
    {"undefined_member", 1, {32}, 0, {{NEVER_WRITTEN, 128}}, {4, 2},
     SIMT_FAULT_UNINITIALISED, 0, {0, 0}, {"local array", "give each element of the array a value"}},
    {"undefined_product", 1, {16, 16}, 0, {{NEVER_WRITTEN, 1024}, {INDICES, 1024}}, {15},
     SIMT_FAULT_UNINITIALISED, 0, {0, 0}, {"reads 4 bytes at offset ", "and stores the value in global memory"}},
};

static const struct mistake shuffles[] = {
    {"shuffle_from_outside_the_mask", 1, {32}, 0, {{NEVER_WRITTEN, 128}, {INDICES, 128}}, {0},
     SIMT_FAULT_SHUFFLE, 0, {0, 0},
     {"takes the value of lane 16 in a shuffle at ", "and stores the value in global memory; that lane",
      "not named in the mask 0x000000ff, and is at ", "name all lanes in the mask"}},
    {"shuffle_from_the_returned", 1, {32}, 0, {{NEVER_WRITTEN, 128}, {INDICES, 128}}, {0},
     SIMT_FAULT_SHUFFLE, 0, {0, 0}, {"lane 16 in a shuffle at ", "that lane has returned, and is named in the mask 0xffffffff"}},
    {"shuffle_beyond_the_block", 1, {20}, 0, {{NEVER_WRITTEN, 4}, {INDICES, 128}}, {0},
     SIMT_FAULT_SHUFFLE, 0, {0, 0}, {"there is no such lane: the block has 20 threads"}},
    {"shuffle_from_another_branch", 1, {32}, 0, {{NEVER_WRITTEN, 128}, {INDICES, 128}}, {0},
     SIMT_FAULT_SHUFFLE, 0, {0, 0},
     {"takes the value of lane 5", "not named in the mask 0x55555555, and is at ", "and decides by the value where to go on"}},
};

static const struct mistake shared_races[] = {
    {"tile_without_barrier", 1, {128}, 0, {{NEVER_WRITTEN, 512}, {INDICES, 512}}, {0},
     SIMT_FAULT_UNINITIALISED, 0, {ANY, 0},
     {"no thread of the block has written so far", "__syncthreads() is missing"}},
    {"reduction_without_barrier", 1, {256}, 0, {{NEVER_WRITTEN, 4}, {INDICES, 1024}}, {0},
     SIMT_FAULT_SHARED_RACE, 0, {ANY, 0}, {"shared memory", "__syncthreads() is missing"}},
    {"tile_loaded_again_too_early", 1, {64}, 0, {{NEVER_WRITTEN, 256}, {INDICES, 1024}}, {256},
     SIMT_FAULT_SHARED_RACE, 0, {ANY, 0}, {"shared memory", "with no barrier"}},
    {"transposition_without_barrier", 1, {16, 16}, 0, {{NEVER_WRITTEN, 1024}, {INDICES, 1024}}, {0},
     SIMT_FAULT_SHARED_RACE, 0, {ANY, ANY}, {"of the same warp wrote at ", "__syncthreads() is missing"}},
    {"scan_in_place", 1, {128}, 0, {{INDICES, 512}}, {0},
     SIMT_FAULT_SHARED_RACE, 0, {ANY, 0}, {"shared memory", "with no barrier"}},
    {"broadcast_without_barrier", 1, {96}, 0, {{NEVER_WRITTEN, 384}, {INDICES, 384}}, {0},
     SIMT_FAULT_UNINITIALISED, 0, {ANY, 0},
     {"no thread of the block has written so far", "__syncthreads() is missing"}},
    {"shared_counter_not_atomic", 1, {64}, 0, {{NEVER_WRITTEN, 4}, {INDICES, 256}}, {0},
     SIMT_FAULT_SHARED_RACE, 0, {ANY, 0}, {"shared memory", "atomic"}},
    {"winner_takes_the_slot", 1, {32}, 0, {{NEVER_WRITTEN, 128}, {INDICES, 128}}, {0},
     SIMT_FAULT_SHARED_RACE, 0, {ANY, 0}, {"writes 4 bytes", "another value"}},
    {"warp_exchange_without_syncwarp", 1, {32}, 0, {{NEVER_WRITTEN, 128}, {INDICES, 128}}, {0},
     SIMT_FAULT_SHARED_RACE, 0, {ANY, 0}, {"__syncwarp()", "!__syncthreads()"}},
    {"last_warp_without_syncwarp", 1, {64}, 0, {{NEVER_WRITTEN, 256}, {INDICES, 256}}, {0},
     SIMT_FAULT_SHARED_RACE, 0, {ANY, 0}, {"__syncwarp()", "!__syncthreads()"}},
    {"neighbour_in_a_tile", 1, {128}, 0, {{NEVER_WRITTEN, 512}, {INDICES, 512}}, {0},
     SIMT_FAULT_SHARED_RACE, 0, {0, 0},
     {"thread (1,0,0) of the same warp wrote at ", "__syncthreads() is missing", "!__syncwarp()"}},
    {"leader_tells_the_block_again", 1, {128}, 0, {{NEVER_WRITTEN, 512}, {INDICES, 512}}, {0},
     SIMT_FAULT_SHARED_RACE, 0, {0, 0},
     {"of the same warp read at ", "__syncthreads() is missing", "!__syncwarp()"}},
    {"leader_tells_all", 1, {32}, 0, {{NEVER_WRITTEN, 128}, {INDICES, 128}}, {5},
     SIMT_FAULT_SHARED_RACE, 0, {1, 0},
     {"thread (0,0,0) of the same warp wrote at ", "__syncwarp()"}},
};

static const struct mistake warp_races[] = {
    {"shifted_in_place_in_one_warp", 1, {32}, 0, {{NEVER_WRITTEN, 128}, {INDICES, 128}}, {0},
     SIMT_FAULT_SHARED_RACE, 0, {1, 0}, {"thread (0,0,0) of the same warp read at ", "lanes need not run"}},
    {"leader_replaces_what_others_read", 1, {32}, 0, {{NEVER_WRITTEN, 128}, {INDICES, 128}}, {0},
     SIMT_FAULT_SHARED_RACE, 0, {0, 0}, {" of the same warp read at ", "__syncwarp()"}},
    {"lanes_one_after_the_other", 1, {32}, 0, {{NEVER_WRITTEN, 128}, {INDICES, 128}}, {0},
     SIMT_FAULT_SHARED_RACE, 0, {ANY, 0}, {"of the same warp wrote", "__syncwarp()"}},
};

static const struct mistake block_races[] = {
    {"reversed_without_barrier", 1, {128}, 0, {{INDICES, 512}}, {0},
     SIMT_FAULT_BLOCK_RACE, 0, {ANY, 0},
     {"race in global memory", "with no barrier in between", "__syncthreads() is missing"}},
    {"results_asked_for_too_early", 1, {128}, 0, {{ZEROS, 512}, {NEVER_WRITTEN, 512}}, {0},
     SIMT_FAULT_BLOCK_RACE, 0, {ANY, 0}, {"race in global memory", "warp", "no barrier"}},
    {"global_sum_without_barrier", 1, {256}, 0, {{NEVER_WRITTEN, 1024}, {INDICES, 1024}}, {0},
     SIMT_FAULT_BLOCK_RACE, 0, {ANY, 0}, {"race in global memory", "no barrier"}},
    {"neighbours_of_every_other_thread", 1, {128}, 0, {{INDICES, 512}}, {0},
     SIMT_FAULT_BLOCK_RACE, 0, {ANY, 0}, {"race in global memory", "read at ", "no barrier"}},
    {"neighbours_in_one_warp", 1, {32}, 0, {{NEVER_WRITTEN, 128}, {ZEROS, 128}}, {0},
     SIMT_FAULT_BLOCK_RACE, 0, {0, 0}, {"thread (1,0,0) of the same warp wrote at ", "__syncwarp()"}},
    {"global_counter_not_atomic", 1, {64}, 0, {{ZEROS, 4}}, {0},
     SIMT_FAULT_BLOCK_RACE, 0, {1, 0}, {"writes another value there", "atomic"}},
    {"flag_without_a_fence", 1, {64}, 0, {{ZEROS, 8}, {ZEROS, 4}}, {0},
     SIMT_FAULT_BLOCK_RACE, 0, {32, 0}, {"reads 4 bytes", "that thread (0,0,0) of warp 0 wrote at ", "!__syncwarp()"}},
};

static const struct mistake global_races[] = {
    {"look_back_without_a_fence", 2, {1}, 0, {{ZEROS, 8}, {ZEROS, 8}}, {0},
     SIMT_FAULT_GLOBAL_RACE, 1, {0, 0}, {"reads 4 bytes", "of block (0,0,0) wrote at "}},
    {"looks_without_a_fence", 2, {1}, 0, {{ZEROS, 8}, {ZEROS, 8}}, {0},
     SIMT_FAULT_GLOBAL_RACE, 1, {0, 0}, {"reads 4 bytes", "of block (0,0,0) wrote at "}},
    {"look_back_reads_again", 2, {64}, 0, {{INDICES, 256}, {ZEROS, 8}}, {0},
     SIMT_FAULT_GLOBAL_RACE, 1, {0, 0}, {"writes 4 bytes", "of block (0,0,0) read at "}},
    {"compacts_without_looking_back", 4, {32}, 0, {{INDICES, 512}, {ZEROS, 16}}, {0},
     SIMT_FAULT_GLOBAL_RACE, 1, {0, 0}, {"writes 4 bytes", "of block (0,0,0) read at "}},
    {"sum_of_blocks_not_atomic", 4, {32}, 0, {{ZEROS, 4}, {INDICES, 64}}, {0},
     SIMT_FAULT_GLOBAL_RACE, ANY, {0, 0}, {"thread (0,0,0) of block (0,0,0) wrote at ", "in the same launch", "atomic"}},
    {"blur_in_place", 4, {64}, 0, {{INDICES, 1024}}, {256},
     SIMT_FAULT_GLOBAL_RACE, ANY, {0, 0}, {"block (0,0,0) read", "blocks run in any order"}},
    {"asks_the_next_block", 4, {32}, 0, {{ZEROS, 64}, {NEVER_WRITTEN, 64}}, {0},
     SIMT_FAULT_GLOBAL_RACE, ANY, {0, 0}, {"writes 4 bytes", " read at ", "in the same launch"}},
    {"asks_the_block_before", 4, {32}, 0, {{ZEROS, 64}, {NEVER_WRITTEN, 64}}, {0},
     SIMT_FAULT_GLOBAL_RACE, ANY, {0, 0}, {"reads 4 bytes", " wrote at ", "in the same launch"}},
    {"blocks_overlap", 3, {64}, 0, {{NEVER_WRITTEN, 1024}}, {0},
     SIMT_FAULT_GLOBAL_RACE, ANY, {0, 0}, {"252 bytes into", "block (0,0,0) wrote"}},
    {"last_block_without_fence", 4, {32}, 0, {{ZEROS, 64}, {ZEROS, 8}}, {0},
     SIMT_FAULT_GLOBAL_RACE, ANY, {0, 0}, {"reads 4 bytes", " wrote at ", "in the same launch"}},
    {"bins_of_all_blocks_not_atomic", 2, {64}, 0, {{ZEROS, 256}, {INDICES, 512}}, {0},
     SIMT_FAULT_GLOBAL_RACE, ANY, {0, 0}, {"block (0,0,0)", "atomic"}},
};

static const struct mistake barriers[] = {
    {"barrier_in_a_branch", 1, {64}, 0, {{NEVER_WRITTEN, 256}}, {0},
     SIMT_FAULT_BARRIER, 0, {ANY, 0}, {"__syncthreads()", "same barrier"}},
    {"barrier_in_a_loop_of_own_length", 1, {64}, 0, {{NEVER_WRITTEN, 256}, {INDICES, 256}}, {0},
     SIMT_FAULT_BARRIER, 0, {ANY, 0}, {"__syncthreads()", "same barrier"}},
    {"barriers_of_two_numbers", 1, {64}, 0, {{NEVER_WRITTEN, 256}}, {0},
     SIMT_FAULT_BARRIER, 0, {0, 0}, {"waits at barrier 1", "of the block's 64 threads 0 have returned", "for ever"}},
    {"barrier_counts_too_many", 1, {64}, 0, {{NEVER_WRITTEN, 256}}, {0},
     SIMT_FAULT_BARRIER, 0, {0, 0}, {"waits at barrier 1 for 96 threads", "for ever"}},
    {"both_sides_wait", 1, {64}, 0, {{NEVER_WRITTEN, 128}, {INDICES, 128}}, {0},
     SIMT_FAULT_BARRIER, 0, {0, 0}, {"waits at barrier 2 for 64 threads", "for ever"}},
    {"shuffle_of_half_a_warp", 1, {32}, 0, {{NEVER_WRITTEN, 128}, {INDICES, 128}}, {0},
     SIMT_FAULT_BARRIER, 0, {0, 0}, {"lanes 0xffff0000", "mask"}},
    {"ballot_of_half_a_warp", 1, {32}, 0, {{NEVER_WRITTEN, 128}, {INDICES, 128}}, {0},
     SIMT_FAULT_BARRIER, 0, {1, 0}, {"lanes 0x55555555", "mask"}},
    {"mask_without_the_caller", 1, {32}, 0, {{NEVER_WRITTEN, 128}, {INDICES, 128}}, {0},
     SIMT_FAULT_BARRIER, 0, {16, 0}, {"mask 0x0000ffff", "own lane is missing"}},
};

static const struct mistake ends[] = {
    {"waits_for_a_flag", 1, {32}, 0, {{ZEROS, 4}}, {0},
     SIMT_FAULT_ENDLESS, 0, {0, 0},
     {"warp instructions", "loop", "everything is as it was before"}},
    {"counts_for_ever", 1, {1}, 0, {{NEVER_WRITTEN, 128}}, {7, 2},
     SIMT_FAULT_ENDLESS, 0, {0, 0}, {"loop", "it has not ended; SIMT_INSTRUCTION_LIMIT"}},
    {"step_of_zero", 1, {32}, 0, {{NEVER_WRITTEN, 128}}, {100, 0},
     SIMT_FAULT_ENDLESS, 0, {0, 0}, {"warp instructions", "loop"}},
    {"waits_for_a_later_block", 3, {1}, 0, {{ZEROS, 64}}, {0},
     SIMT_FAULT_ENDLESS, 0, {0, 0}, {"warp instructions", "must not wait for a later one"}},
    {"recursion_without_end", 1, {1}, 0, {{NEVER_WRITTEN, 128}}, {0},
     SIMT_FAULT_STACK, 0, {0, 0},
     {"stack overflow", "calls depth(), 3", "the stack of a thread is full (1024 bytes",
      "cudaLimitStackSize"}},
    {"index_not_checked", 1, {64}, 0, {{NEVER_WRITTEN, 160}}, {40},
     SIMT_FAULT_ASSERT, 0, {40, 0}, {"assertion failed", "i < n"}},
    {"gives_up", 2, {32}, 0, {{NEVER_WRITTEN, 4}}, {8},
     SIMT_FAULT_TRAP, 0, {0, 0}, {"__trap()"}},
};

/* clang-format on */

/* The parameters of a launch, and what has to be given back after it. */
struct arguments {
    union {
        uint64_t pointers[MAX_BUFFERS];
        unsigned char bytes[8 * MAX_BUFFERS + 4 * MAX_NUMBERS];
    } block;
    size_t used;
    void *host;
};

static uint64_t make_buffer(struct launch_testing *t, const struct buffer *buffer, void **host) {
    int values[1024] = {0};
    for (int i = 0; i < 1024 && buffer->contents == INDICES; i++) {
        values[i] = i;
    }
    if (buffer->contents == NULL_POINTER) {
        return 0;
    }
    if (buffer->contents == HOST) {
        *host = calloc(1, buffer->bytes);
        return (uint64_t)(uintptr_t)*host;
    }
    uint64_t address =
        launch_testing_upload(t, buffer->contents == NEVER_WRITTEN ? NULL : values, buffer->bytes);
    if (buffer->contents == FREED) {
        EXPECT_OK(simt_memory_release(t->memory, address));
    }
    return address;
}

static void make_arguments(struct launch_testing *t, const struct mistake *m,
                           struct arguments *arguments) {
    *arguments = (struct arguments){.used = 0};
    for (size_t n = 0; n < MAX_BUFFERS && m->buffers[n].contents != NOTHING; n++) {
        arguments->block.pointers[n] = make_buffer(t, &m->buffers[n], &arguments->host);
        if (strcmp(m->kernel, "guard_forgotten") == 0) {
            const char *name = n == 0 ? "y" : "x";
            EXPECT_OK(simt_memory_name(t->memory, arguments->block.pointers[n], name));
        }
        arguments->used += 8;
    }
    memcpy(arguments->block.bytes + arguments->used, m->numbers, sizeof m->numbers);
}

/* True when one of the lines marked "FAULT: kernel", or with another word, is line `line` of the
 * source. */
static bool line_is_marked(const char *source, const char *word, const char *kernel,
                           uint32_t line) {
    char mark[128];
    int size = snprintf(mark, sizeof mark, "// %s: %s\n", word, kernel);
    const char *at = source;
    for (uint32_t n = 1; at != NULL && *at != '\0'; n++) {
        const char *end = strchr(at, '\n');
        size_t length = end != NULL ? (size_t)(end - at) + 1 : strlen(at);
        if (n == line) {
            return length >= (size_t)size && memcmp(at + length - size, mark, (size_t)size) == 0;
        }
        at += length;
    }
    return false;
}

static bool is(int want, uint32_t got) {
    return want == ANY || (uint32_t)want == got;
}

/* Of a race the other access, and of a helper its calls. */
static bool other_lines_are_marked(const struct mistake *m, const struct simt_fault *fault,
                                   const char *source) {
    const char *at = fault->race.raced ? strstr(fault->text, "faulty.cu:") : NULL;
    uint32_t other = at != NULL ? (uint32_t)strtoul(at + strlen("faulty.cu:"), NULL, 10) : 0;
    bool marked = !fault->race.raced || line_is_marked(source, "FAULT", m->kernel, other) ||
                  line_is_marked(source, "OTHER", m->kernel, other);
    for (size_t n = 0; n < SIMT_FAULT_CALLERS && fault->callers[n].line != 0; n++) {
        marked = marked && line_is_marked(source, "CALL", m->kernel, fault->callers[n].line);
    }
    return marked;
}

/* Where an undefined value was read, and what else a shuffle names. */
static bool reads_are_marked(const struct mistake *m, const struct simt_fault *fault,
                             const char *source) {
    bool undefined = fault->kind == SIMT_FAULT_UNINITIALISED || fault->kind == SIMT_FAULT_SHUFFLE;
    const char *at = undefined ? fault->text : "";
    bool marked = true;
    while ((at = strstr(at, "faulty.cu:")) != NULL) {
        at += strlen("faulty.cu:");
        uint32_t line = (uint32_t)strtoul(at, NULL, 10);
        marked = marked && (line_is_marked(source, "READ", m->kernel, line) ||
                            line_is_marked(source, "OTHER", m->kernel, line) ||
                            line_is_marked(source, "FAULT", m->kernel, line));
    }
    return marked;
}

/* @return what is wrong with the fault, or NULL */
static const char *judge(const struct mistake *m, const struct simt_fault *fault,
                         const char *message, const char *source) {
    char place[512];
    snprintf(place, sizeof place, "in kernel %s at ", m->kernel);
    if (fault->kind != m->kind) {
        return "another kind of fault";
    }
    if (!is(m->block, fault->block[0]) || !is(m->thread[0], fault->thread[0]) ||
        !is(m->thread[1], fault->thread[1])) {
        return "another thread";
    }
    if (strstr(message, place) == NULL) {
        return "the kernel's name is missing";
    }
    snprintf(place, sizeof place, "faulty.cu:%u\n", fault->line);
    if (strstr(message, place) == NULL ||
        !line_is_marked(source, "FAULT", m->kernel, fault->line)) {
        return "not the marked line";
    }
    if (!other_lines_are_marked(m, fault, source)) {
        return "not the marked lines of the other access, or of the calls";
    }
    if (!reads_are_marked(m, fault, source)) {
        return "not the marked line of the read";
    }
    for (size_t n = 0; n < MAX_WORDS && m->words[n] != NULL; n++) {
        bool unwanted = m->words[n][0] == '!';
        if ((strstr(message, m->words[n] + unwanted) != NULL) == unwanted) {
            return m->words[n];
        }
    }
    return NULL;
}

/* What users see of a mistake, and what was counted until then. */
struct outcome {
    char *message;
    struct simt_counters counters;
};

/* Makes one mistake in memory of its own. The caller frees the message, which may be NULL. */
static struct outcome make_mistake(const struct mistake *m, int host_threads, const char *source) {
    struct launch_testing t;
    struct arguments arguments;
    if (!launch_testing_open(&t, FAULTY_PTX)) {
        return (struct outcome){.message = NULL};
    }
    make_arguments(&t, m, &arguments);
    launch_testing_run(&t,
                       LAUNCH(.kernel = m->kernel, .grid = {m->grid},
                              .threads = {m->threads[0], m->threads[1]}, .shared = m->shared,
                              .parameters = arguments.block.bytes, .host_threads = host_threads));
    struct outcome outcome = {launch_testing_message(&t.fault), t.counters};
    const char *wrong = judge(m, &t.fault, outcome.message, source);
    if (wrong != NULL) {
        TEST_FAIL("%s: %s\n%s", m->kernel, wrong, outcome.message);
    }
    free(arguments.host);
    launch_testing_close(&t);
    return outcome;
}

/* Makes a mistake where only some blocks are checked, in launch number `number`. @return its
 * message, which the caller frees; NULL: it was not seen */
static char *make_sampled(const struct mistake *m, uint64_t number, int host_threads) {
    struct launch_testing t;
    struct arguments arguments;
    char *message = NULL;
    if (!launch_testing_open(&t, FAULTY_PTX)) {
        return NULL;
    }
    make_arguments(&t, m, &arguments);
    if (!launch_testing_run(&t, LAUNCH(.kernel = m->kernel, .grid = {m->grid},
                                       .threads = {m->threads[0], m->threads[1]},
                                       .shared = m->shared, .parameters = arguments.block.bytes,
                                       .host_threads = host_threads, .sampled = true,
                                       .number = number))) {
        message = launch_testing_message(&t.fault);
    }
    free(arguments.host);
    launch_testing_close(&t);
    return message;
}

/* What the sample finds is said in the words of full checks. */
static void find_by_sample(const struct mistake *m, const char *wanted, bool whole) {
    enum { TRIES = 400 };
    char *message = NULL;
    for (uint64_t n = 0; n < TRIES && message == NULL; n++) {
        if (simt_sample_is_whole(0, n) == whole) {
            message = make_sampled(m, n, 1 + (int)(n % 2));
        }
    }
    if (message == NULL || strcmp(message, wanted) != 0) {
        TEST_FAIL("%s: with a sample of blocks\n%s\nbut with all\n%s", m->kernel,
                  message != NULL ? message : "nothing was found", wanted);
    }
    free(message);
}

/* Makes it again with as many host threads: in the same words, with the same counts. */
static void make_again(const struct mistake *m, int host_threads, const char *source,
                       const struct outcome *first) {
    struct outcome again = make_mistake(m, host_threads, source);
    bool host = m->buffers[0].contents == HOST; /* at another address each time */
    if (again.message != NULL && !host && strcmp(first->message, again.message) != 0) {
        TEST_FAIL("%s with %d host threads: not as with one, where it was\n%s\nbut\n%s", m->kernel,
                  host_threads, first->message, again.message);
    }
    if (memcmp(&first->counters, &again.counters, sizeof again.counters) != 0) {
        TEST_FAIL("%s: other counts with %d host threads than with one", m->kernel, host_threads);
    }
    free(again.message);
}

/* Several blocks may come in any order: tried often. One that does not end takes too long. */
static int repeats_of(const struct mistake *m) {
    return m->grid > 1 && m->kind != SIMT_FAULT_ENDLESS ? REPEATS : 1;
}

static void make_mistakes(const struct mistake *mistakes, size_t count) {
    char *source = NULL;
    size_t size = 0;
    struct error error = {0};
    ASSERT_OK(file_read(FAULTY_CU, (size_t)1 << 20, &source, &size, &error));
    for (size_t n = 0; n < count; n++) {
        struct outcome first = make_mistake(&mistakes[n], 1, source);
        for (int tried = 0; tried < repeats_of(&mistakes[n]) && first.message != NULL; tried++) {
            for (int host_threads = 1; host_threads <= 8 && !test_has_failed();
                 host_threads *= HOST_THREADS_STEP) {
                make_again(&mistakes[n], host_threads, source, &first);
            }
        }
        free(first.message);
    }
    free(source);
}

/* Between blocks races are found where a launch is checked as a whole. */
static void sample_mistakes(const struct mistake *mistakes, size_t count, bool between_blocks) {
    char *source = NULL;
    size_t size = 0;
    struct error error = {0};
    ASSERT_OK(file_read(FAULTY_CU, (size_t)1 << 20, &source, &size, &error));
    for (size_t n = 0; n < count; n++) {
        struct outcome all = make_mistake(&mistakes[n], 1, source);
        find_by_sample(&mistakes[n], all.message, true);
        if (!between_blocks) {
            find_by_sample(&mistakes[n], all.message, false);
        }
        free(all.message);
    }
    free(source);
}

#define SAMPLE_MISTAKES(table, between_blocks) \
    sample_mistakes(table, sizeof(table) / sizeof *(table), between_blocks)

#define MAKE_MISTAKES(table) make_mistakes(table, sizeof(table) / sizeof *(table))

C_TEST(faulty, beyond_an_array_in_global_memory) {
    MAKE_MISTAKES(beyond_global);
}

C_TEST(faulty, pointers_to_nowhere) {
    MAKE_MISTAKES(wild_pointers);
}

C_TEST(faulty, misaligned_addresses) {
    MAKE_MISTAKES(misaligned);
}

C_TEST(faulty, beyond_shared_and_local_arrays) {
    MAKE_MISTAKES(beyond_shared_and_local);
}

C_TEST(faulty, memory_that_nothing_has_written) {
    MAKE_MISTAKES(never_written);
}

C_TEST(faulty, undefined_values_that_are_used) {
    MAKE_MISTAKES(used);
}

C_TEST(faulty, shuffles_from_lanes_that_are_not_there) {
    MAKE_MISTAKES(shuffles);
}

C_TEST(faulty, races_in_shared_memory) {
    MAKE_MISTAKES(shared_races);
}

C_TEST(faulty, races_inside_a_warp) {
    MAKE_MISTAKES(warp_races);
}

C_TEST(faulty, races_of_one_block_in_global_memory) {
    MAKE_MISTAKES(block_races);
}

C_TEST(faulty, races_between_blocks) {
    MAKE_MISTAKES(global_races);
}

C_TEST(faulty, a_sample_of_blocks_has_races_in_shared_memory) {
    SAMPLE_MISTAKES(shared_races, false);
}

C_TEST(faulty, a_sample_of_blocks_has_races_inside_a_warp) {
    SAMPLE_MISTAKES(warp_races, false);
}

C_TEST(faulty, a_sample_of_blocks_has_races_of_one_block_in_global_memory) {
    SAMPLE_MISTAKES(block_races, false);
}

C_TEST(faulty, a_sample_of_launches_has_races_between_blocks) {
    SAMPLE_MISTAKES(global_races, true);
}

C_TEST(faulty, barriers_that_not_all_reach) {
    MAKE_MISTAKES(barriers);
}

C_TEST(faulty, kernels_that_do_not_end_well) {
    MAKE_MISTAKES(ends);
}
