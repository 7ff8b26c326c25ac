#include "grader/thresholds.h"

#include <string.h>

/*
 * What is required is a share of what the machine at hand can do at best, found in the same run:
 * harness/work.h. On every GPU that //grader/cards:table knows, and on those that were measured, a
 * solution reaches at least 1.25 times the share that passes (--config=solutions checks that), and
 * a starter at most half of it. "Good" is below what a step from the middle of the
 * ladder reaches everywhere, "gold" below what the solution reaches.
 *
 * A lab has 100 points. Parity brings 20 and no more, because the starter has
 * it, too. The subject of the lab brings 60 or 80, in steps, as a kernel that
 * passes is not yet a good one. A faster model brings 20: all or, from 1.1x on,
 * half; a lab without a model to speed up counts something that it does for one.
 * A row with shares of 0 is counted, not timed.
 */
static const struct threshold thresholds[] = {
    {"01_cpu_matmul",
     "kernel",
     60,
     {0.13, 0.28, 0.48},
     {0.25, 0.4, 0.57},
     "FLOPs at the fp32 speed of two threads, or of one where there is one CPU",
     "512x512x512 against the naive triple loop",
     "cache blocking passes on all CPUs, a loop order that suits vectors where vectors are short; "
     "threads alone pass on none. On one CPU a single thread is all of the limit and not half of "
     "it, so passing takes about twice the share: the naive loop, which no vector helps, reaches a "
     "tenth of a core that has SSE alone",
     "a register tile on one thread is good, on two threads gold; being ahead of OpenBLAS is not "
     "asked, because its speed depends on whether it knows the CPU"},
    {"01_cpu_matmul",
     "end_to_end",
     20,
     {0.6, 0, 0},
     {0, 0, 0},
     "the weights, read once at the speed that their size is read at",
     "Llama2 decode, 15M shape, against the same engine with the naive triple loop",
     "decoding is one row at a time: bandwidth, not arithmetic, sets the limit",
     NULL},
    {"02_gpu_matmul",
     "kernel",
     60,
     {0.15, 0.25, 0.36},
     {0.28, 0.34, 0.75},
     "the matrix, read once from memory",
     "1x1024x11264 against one thread an output",
     "every byte of a loaded sector must be used, and there must be enough blocks for the whole "
     "GPU; rows are few and long, because one thread an output is at half of the limit on an L4 "
     "otherwise",
     "a block an output is good, a warp an output gold; measured, half of the roofline is enough: "
     "90% of it is the subject of lab 09"},
    {"02_gpu_matmul",
     "calls_allocate_nothing",
     20,
     {0, 0, 0},
     {0, 0, 0},
     NULL,
     "allocations of calls whose sizes were seen before",
     "keeping buffers is how this lab makes the model faster: allocations took a third of a "
     "token's time on an H200, and every weight still crosses the bus",
     NULL},
    {"03_resident_weights",
     "end_to_end",
     80,
     {0.3, 0.5, 0.9},
     {0.3, 0.45, 0.8},
     "a launch an operator (93 in a row), the weights read once, the logits over the bus",
     "Llama2 decode, 15M shape, against solved lab 02, which copies the weights for each token",
     "the bus is dozens of times narrower than the GPU's memory; the cost of launches takes most "
     "of that gain back",
     "with the weights resident and everything else copied or cleared for each token half of the "
     "limit is reached; no copy beside the logits is gold"},
    {"04_sgemm",
     "kernel",
     60,
     {0.2, 0.35, 0.65},
     {0.2, 0.225, 0.36},
     "2 M N K FLOPs at the fp32 units' speed",
     "2048x2048x2048 (on simt 2048x2048x256), transposed B, against the starter's kernel",
     "a plain tile in shared memory does not pass: each value that is read from it must serve "
     "several multiply-adds",
     "8x8 results a thread with vector loads are good; gold is the level of cuBLAS on an H200, "
     "where the solution is 1.02 of it; on simt a short K leaves a tail, and a T4's 64 KiB of "
     "shared memory hold few blocks: its solution is good there, not gold"},
    {"04_sgemm",
     "end_to_end",
     20,
     {0.2, 0, 0},
     {0.09, 0, 0},
     "FLOPs of the layers' products at the fp32 units' speed; all other operators beside them",
     "BERT, a batch of sentences, against the same engine with the starter's kernel",
     "attention, norms and activations stay as they were, and are timed without the matmuls",
     NULL},
    {"05_layernorm_softmax",
     "layernorm",
     30,
     {0.1, 0.14, 0.45},
     {0.02, 0.033, 0.3},
     "rows read once and written once",
     "LayerNorm fp32, 2048 rows of 8192 (on simt two of 2560 a multiprocessor), against the "
     "starter's thread a row",
     "bandwidth is the limit: neighbouring threads must read neighbouring elements, and each row "
     "needs many threads",
     "a block a row is good; one pass with the row in registers is gold; a case on simt is small, "
     "so on a large GPU latencies count beside the limit: shares are lower there than on a small "
     "one"},
    {"05_layernorm_softmax",
     "softmax",
     30,
     {0.06, 0.09, 0.35},
     {0.009, 0.0145, 0.33},
     "rows read once and written once",
     "softmax bf16, 2048 rows of 8192 (on simt two of 2560 a multiprocessor), against the "
     "starter's thread a row",
     "bandwidth is the limit here, too, with half the bytes",
     "as for layernorm"},
    {"05_layernorm_softmax",
     "end_to_end",
     20,
     {0.1, 0, 0},
     {0.3, 0, 0},
     "the norms' rows read and written once, a launch a norm; all other operators beside them",
     "BERT, one sentence, against the same engine with the starter's norms",
     "matmul and attention stay as they were, and are timed without the norms",
     NULL},
    {"06_fused_epilogues",
     "launches",
     20,
     {0, 0, 0},
     {0, 0, 0},
     NULL,
     "kernels of each fused operator",
     "a fused operator takes one launch or two, whatever the GPU",
     NULL},
    {"06_fused_epilogues",
     "epilogues",
     40,
     {0.2, 0.4, 0.85},
     {0.3, 0.4, 0.58},
     "the residual stream read once, and one launch more than the matmuls",
     "the four linear layers of a BERT layer: time beyond their plain matmuls, against a launch "
     "for each operator",
     "the data around the matmul is read and written once, not once per operator",
     "bias and activation in the matmul are good; norms in one launch or two are gold"},
    {"06_fused_epilogues",
     "model_is_not_slower",
     20,
     {0, 0, 0},
     {0, 0, 0},
     NULL,
     "BERT with the fused operators against the same with single ones",
     "a fusion that does not help the model is not worth its code",
     NULL},
    {"07_attention",
     "kernel",
     30,
     {0.15, 0.25, 0.36},
     {0.1, 0.15, 0.24},
     "FLOPs of both products at the fp32 units' speed",
     "fp32, 12 heads of 64, 8 sequences of 512 (on simt a head a multiprocessor, 128), against the "
     "starter's block a query",
     "tiles in shared memory alone do not pass: each value read must serve several FMAs, in "
     "registers",
     "gold is the speed of PyTorch's memory-efficient attention on an H200, less some for noise; a "
     "case on simt is small, so on a large GPU latencies count beside the limit: shares are lower "
     "there than on a small one"},
    {"07_attention",
     "kernel_bf16",
     30,
     {0.06, 0.09, 0.22},
     {0.05, 0.095, 0.18},
     "FLOPs of both products at the tensor cores' speed, by mma in bf16",
     "the same in bf16",
     "only tensor cores multiply that fast",
     "gold is the speed of FlashAttention-2 on an H200, less some for noise; the speed of cuDNN's "
     "attention, 1.19 times "
     "the solution's in the bench, is not asked; a case on simt is small, so on a large GPU "
     "latencies count beside the limit: shares are lower there than on a small one"},
    {"07_attention",
     "end_to_end",
     20,
     {0.06, 0, 0},
     {0.12, 0, 0},
     "FLOPs of attention at the fp32 units' speed, a launch a layer; all other operators beside "
     "them",
     "BERT, packed texts of 256 to 512 tokens (on simt 192 to 384), against the same engine with "
     "the starter's kernel",
     "matmul, norms and activations stay as they were, and are timed without attention",
     NULL},
    {"08_bert_classifier",
     "launches",
     20,
     {0, 0, 0},
     {0, 0, 0},
     NULL,
     "kernels of one layer, at most",
     "each operator that shares another one's launch saves one",
     NULL},
    {"08_bert_classifier",
     "encoder",
     40,
     {1, 1.1, 1.25},
     {1.2, 1.45, 1.7},
     "the starter's encoder on as many rows without padding",
     "64 news articles of 24 to 124 tokens, only first rows wanted, against the starter's padded "
     "batch with a launch an operator",
     "58% of the padded batch's rows are padding: leaving them out gives the speed of a batch "
     "without",
     "fewer launches, and a last layer that computes only the rows that are read, give more than "
     "that"},
    {"08_bert_classifier",
     "end_to_end",
     20,
     {1, 1.1, 1.25},
     {1.2, 1.45, 1.65},
     "the starter's model on as many rows without padding",
     "the same articles from ids to logits, against the same engine with the starter's encoder",
     "the pooler, the classifier and the copy of the logits stay as they were",
     "as for the encoder, less what stays"},
    {"09_kv_cache",
     "linear",
     30,
     {0.2, 0.3, 0.65},
     {0.1, 0.115, 0.23},
     "the matrix, read once",
     "bf16, 8192 x 28672 (on simt 512 x 8192) and a residual, against the starter's thread a row",
     "memory's speed is the limit: neighbouring threads must read neighbouring elements, and a row "
     "have many threads",
     "gold leaves room for the tail of a launch: in the bench the solution reaches 0.81 of a probe "
     "that only reads; a case on simt is small, so on a large GPU latencies count beside the "
     "limit: shares are lower there than on a small one"},
    {"09_kv_cache",
     "token",
     30,
     {0.03, 0.06, 0.13},
     {0.25, 0.45, 0.5},
     "the weights of q, k and v and the cache read once, two launches",
     "attention of one layer at position 511 (on simt 31), bf16, against keys and values computed "
     "anew",
     "with a cache there is one row to compute, not all of them; on simt, where the text is short, "
     "latency counts",
     "two launches that read the cache once are gold; on simt, where the text is short, launches "
     "count"},
    {"09_kv_cache",
     "end_to_end",
     20,
     {0.2, 0, 0},
     {0.45, 0, 0},
     "six launches a layer and two more a token, the weights read once a token, a wait a token",
     "Llama2 decode, 110M shape with 4 layers, 256 tokens from the first on (on simt a tiny one, "
     "16), against the same engine with the starter's operators",
     "SwiGLU, the embedding and launches are not part of the lab and stay as they were",
     NULL},
    {"10_llama2_decoder",
     "launches",
     10,
     {0, 0, 0},
     {0, 0, 0},
     NULL,
     "kernels of a token's layer, at most",
     "each operator that shares another one's launch saves one",
     NULL},
    {"10_llama2_decoder",
     "decode",
     25,
     {0.1, 0.2, 0.33},
     {0.25, 0.35, 0.41},
     "the weights read once a step, launches as nodes of one graph",
     "steps behind a prompt, 8 layers of 512 channels, 32,000 tokens to draw from by top-p (on "
     "simt 2 layers of 192, 1000 tokens, greedy), against the starter's",
     "fewer launches, a graph and a token drawn on the GPU",
     "the solution's step is one graph"},
    {"10_llama2_decoder",
     "prefill",
     25,
     {0.1, 0.2, 0.33},
     {0.12, 0.22, 0.33},
     "FLOPs of the prompt's products at the fp32 units' speed, launches in a row",
     "a prompt of 512 tokens (on simt 40) at once, against the starter's token by token",
     "each weight is read once for all tokens: feeding them one by one is never a third as fast",
     "reading each weight once for the whole prompt is good, products in tiles as in lab 04 are "
     "gold"},
    {"10_llama2_decoder",
     "end_to_end",
     20,
     {0.1, 0, 0},
     {0.24, 0, 0},
     "the prompt and the steps, as above",
     "a prompt of 64 tokens and 96 drawn ones (on simt 5 and 8) through the engine, against the "
     "same with the starter's decoder",
     "the engine and its copies of tokens stay as they were",
     NULL},
    {"11_training",
     "layernorm",
     20,
     {0.06, 0.1, 0.17},
     {0.03, 0.04, 0.075},
     "rows read once and written once; on simt from L2, which holds them",
     "LayerNorm's gradient, bf16, 8192 rows of 768 (on simt eight a multiprocessor), against the "
     "starter's thread a row and thread a column",
     "a warp per row that also sums up the columns reads each element once; rows first and columns "
     "afterwards read it twice",
     "one pass that also sums up the columns is gold, rows first and columns afterwards good; a "
     "case on simt is small, so on a large GPU latencies count beside the limit: shares are lower "
     "there than on a small one"},
    {"11_training",
     "attention",
     25,
     {0.04, 0.07, 0.095},
     {0.014, 0.018, 0.038},
     "FLOPs of five products at the tensor cores' speed, by mma in bf16",
     "attention's gradient, bf16, 16 texts of 256 tokens and 12 heads (on simt one text, a head "
     "for eight multiprocessors), against the starter's stored matrices",
     "only tensor cores multiply that fast",
     "keys on tensor cores are good, queries, too, gold; a case on simt is small, so on a large "
     "GPU latencies count beside the limit: shares are lower there than on a small one"},
    {"11_training",
     "adamw",
     15,
     {0.6, 0.65, 0.76},
     {0.38, 0.42, 0.55},
     "30 bytes a parameter, in one launch",
     "AdamW for 17 million parameters (on simt as many as memory moves in 3 us) with a bf16 copy, "
     "against a kernel for each line of the formula",
     "30 bytes per parameter have to be moved, once: the starter moves 54, in five launches. Where "
     "memory is the limit of both it is no further away than that, 0.6 of this share on an H100, "
     "so launches are counted, too: one",
     "all loads of a thread under way before the first is used"},
    {"11_training",
     "end_to_end",
     20,
     {0.15, 0, 0},
     {0.2, 0, 0},
     "the gradients of norms and attention and AdamW at the limits above; all else beside them",
     "training steps of BERT in bf16, 4 layers of 768 channels, 16 texts of 256 tokens (on simt "
     "one layer of 256 and 3 texts), against the same engine with the starter's functions",
     "products, the forward pass and the other gradients stay as they were, and are timed without "
     "the lab's functions",
     NULL},
    {"12_tensor_cores",
     "kernel",
     40,
     {0.2, 0.4, 0.7},
     {0.09, 0.11, 0.22},
     "2 M N K FLOPs at the speed of the tensor cores' mma.sync",
     "4096x4096x4096 in bf16 (on simt 1536x1408x256), against the starter's tile on the CUDA cores",
     "mma.sync from a swizzled tile passes, on any GPU since Ampere: tiles of 64 x 64 in a ring of "
     "stages; no kernel on the CUDA cores comes near it",
     "large tiles are good; on Hopper gold is wgmma fed by the TMA, which is faster than mma.sync "
     "can be there; on simt K is short, so that the first load and the last store count"},
    {"12_tensor_cores",
     "fused",
     20,
     {0.15, 0.3, 0.5},
     {0.09, 0.093, 0.2},
     "2 M N K FLOPs at the speed of the tensor cores' mma.sync",
     "8192x3072x768 (on simt 768x1024x768) with bias, GELU (tanh) and residual, against the "
     "starter's",
     "the same kernel with its epilogue, of a layer whose K is short",
     "an epilogue that loads and stores 16 bytes at once, and does not keep the next tile waiting"},
    {"12_tensor_cores",
     "end_to_end",
     20,
     {0.2, 0, 0},
     {0.2, 0, 0},
     "FLOPs of the layers' products at the speed of the tensor cores' mma.sync, a launch for each; "
     "all other operators beside them",
     "BERT in bf16, a batch of sentences, against the same engine with the starter's product",
     "attention, norms and launches stay as they were, and are timed without the products",
     NULL},
    {"13_low_bit",
     "int8",
     30,
     {0.45, 0.55, 0.65},
     {0.12, 0.2, 0.25},
     "the weights, read once",
     "one row times 32768x8192 weights of 8 bits, a scale a row (on simt 4096x2048), against lab "
     "09's product in bf16",
     "half of bf16's bytes are what the lab is about, so no product passes that is slower than "
     "lab 09's, whatever its share; on simt the matrix fits into L2, and the launch, the first "
     "load and the last sum are most of the time. Measured, lab 09's product is at half of "
     "this limit",
     "an order that is made for tensor cores, 16 bytes a load, is good; with enough warps it is "
     "gold"},
    {"13_low_bit",
     "int4",
     30,
     {0.25, 0.4, 0.5},
     {0.06, 0.08, 0.1},
     "the weights, read once",
     "one row times 32768x8192 weights of 4 bits in groups of 128 with zero points (on simt "
     "4096x2048), against lab 09's product in bf16",
     "as with 8 bits: a quarter of the bytes, and not slower than all of them",
     "as with 8 bits"},
    {"13_low_bit",
     "eight_rows",
     20,
     {0.1, 0.3, 0.45},
     {0.05, 0.065, 0.085},
     "the weights, read once",
     "eight rows at once times the weights of 4 bits, against lab 09's product in bf16 for one "
     "row after the other",
     "eight rows read the same weights as one: tensor cores pass; products on the CUDA cores, 4% "
     "on an H100, do not",
     "as with one row"},
    {"14_endless_text",
     "attention",
     35,
     {0.06, 0.2, 0.35},
     {0.27, 0.36, 0.5},
     "the cache read once, two launches",
     "attention behind a full cache, bf16, 64 heads of 128, 4 sinks and 1020 tokens (on simt 4 "
     "heads of 64, 128 tokens), against the starter's, which moves the window down and keeps its "
     "scores in device memory",
     "a ring moves nothing; the starter reads and writes the cache once more for each token, and "
     "has too few threads to do so",
     "16 bytes a load and the tokens split over blocks are gold; on simt, where the cache is "
     "small, launches count"},
    {"14_endless_text",
     "add_norms",
     25,
     {0.08, 0.25, 0.33},
     {0.1, 0.3, 0.45},
     "one launch",
     "both additions and both LayerNorms behind a layer of 4096 channels (on simt 2560), 64 of "
     "them in a row (on simt 4), against the starter's four launches",
     "mean and variance are one sum a row, not one a thread",
     "one launch for all of it is gold; one for the sum and one for each norm passes"},
    {"14_endless_text",
     "end_to_end",
     20,
     {0.3, 0, 0},
     {0.2, 0, 0},
     "seven launches a layer and three more a token, the weights and the cache read once a token, "
     "a wait a token",
     "GPT-NeoX decode behind a full cache, 4 layers of 1024 channels, 4 sinks and 252 tokens (on "
     "simt one layer and 16 tokens), against the same decoder with the starter's operators",
     "products, the activation, the embedding and launches are not part of the lab and stay as "
     "they were",
     NULL},
    {"15_many_gpus",
     "small_sums",
     35,
     {0.1, 0, 0},
     {0.1, 0, 0},
     "a launch each, in a graph; the link is not part of the limit",
     "all-reduces of 8 KiB in fp32 on two GPUs, 64 one behind the other (on simt 8), against the "
     "starter's copies through the host",
     "two waits of the host and two copies a call cost ten times what a kernel takes that "
     "exchanges "
     "through peer memory",
     NULL},
    {"15_many_gpus",
     "large_sums",
     25,
     {0.045, 0, 0},
     {0.03, 0, 0},
     "each GPU's data read and written once; the link is not part of the limit",
     "an all-reduce of 32 MiB in bf16 on two GPUs (on simt 512 KiB), against the starter's",
     "NVLink carries seven times what the bus to the host does",
     NULL},
    {"15_many_gpus",
     "end_to_end",
     20,
     {0.15, 0, 0},
     {0.08, 0, 0},
     "five launches a layer and two more a token, half of the weights read on each GPU",
     "Llama2 decode on two GPUs, bf16, 4 layers of 2048 channels (on simt one of 128), against the "
     "same decoder with the starter's functions and cut",
     "attention and the products in front of the exchange stay as they were",
     NULL},
};

enum { ROWS = sizeof thresholds / sizeof *thresholds };

const struct threshold *threshold_at(size_t index) {
    return index < ROWS ? &thresholds[index] : NULL;
}

const struct threshold *threshold_find(const char *lab, const char *measure) {
    for (size_t i = 0; i < ROWS; i++) {
        if (strcmp(thresholds[i].lab, lab) == 0 && strcmp(thresholds[i].measure, measure) == 0) {
            return &thresholds[i];
        }
    }
    return NULL;
}

struct steps threshold_shares(const struct threshold *threshold, bool other) {
    return other && threshold->other.pass > 0.0 ? threshold->other : threshold->shares;
}

enum step threshold_step(const struct steps *steps, double reached) {
    if (!(reached >= steps->pass)) {
        return STEP_NONE;
    }
    if (!(steps->gold > 0.0) || reached >= steps->gold) {
        return STEP_GOLD;
    }
    return reached >= steps->good ? STEP_GOOD : STEP_PASS;
}

int threshold_points(const struct threshold *threshold, enum step step) {
    static const int percent[] = {
        [STEP_NONE] = 0, [STEP_PASS] = 60, [STEP_GOOD] = 80, [STEP_GOLD] = 100};
    return threshold->points * percent[step] / 100;
}
