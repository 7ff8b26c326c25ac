#include "grader/thresholds.h"

#include <string.h>

/*
 * A speedup is a ratio of two times from one run on one machine. A solution
 * must clear its threshold by a quarter (--config=solutions checks that), and a
 * starter, which is the baseline itself, reaches at most half of it.
 *
 * A lab has 100 points. Being right brings 20: the starter is, too, so that it
 * must not bring more. What the lab is about brings 60 of them or 80, in steps,
 * as a kernel that passes is not yet a good one. A faster model brings 20, all
 * or, from 1.1x on, half; where a lab has no model of its own to speed up, what it
 * does for one is counted instead. A row with steps of 0 is counted, not timed.
 */
static const struct threshold thresholds[] = {
    {"01_cpu_matmul",
     "kernel",
     60,
     {8, 16, 30},
     {0, 0, 0},
     "512x512x512 against the naive triple loop",
     "one core with cache blocking and vectors passes; threads alone do not on eight cores or "
     "fewer",
     "cache blocking and vectors are 23x on an idle core of an EPYC, registers 53x, two cores "
     "100x, level with OpenBLAS; the solution's graded runs beside other work gave 39x and 67x, so "
     "gold is no more than a register tile; being ahead of OpenBLAS is not asked, as it depends on "
     "the CPU that OpenBLAS knows"},
    {"01_cpu_matmul",
     "end_to_end",
     20,
     {2, 0, 0},
     {0, 0, 0},
     "Llama2 decode, 15M shape, against the same engine with the naive triple loop",
     "decoding is one row at a time: bandwidth, not arithmetic, sets the limit",
     NULL},
    {"02_gpu_matmul",
     "kernel",
     60,
     {4, 9, 12},
     {4, 9, 15},
     "1x5632x2048 against one thread an output",
     "every byte of a sector used, and blocks enough for the whole GPU",
     "by the bench a block an output is 11.6x on an H200 and 10.6x on simt, a warp an output 15.2x "
     "and 18.6x; the solution's graded runs are 13.2x to 14.3x and 19.3x; that is half of the "
     "roofline: 90% of it is lab 09's subject"},
    {"02_gpu_matmul",
     "calls_allocate_nothing",
     20,
     {0, 0, 0},
     {0, 0, 0},
     "allocations of calls whose sizes were seen before",
     "buffers that are kept are this lab's way to a faster model: allocations were a third of a "
     "token on an H200, and every weight still crosses the bus",
     NULL},
    {"03_resident_weights",
     "end_to_end",
     80,
     {4, 8, 15},
     {4, 7, 10},
     "Llama2 decode, 15M shape, against solved lab 02, which copies the weights for each token",
     "the bus is dozens of times narrower than the GPU's memory; launches take most of that back",
     "the solution's graded runs on an H200 are 18x to 34x, of a baseline, copies, that took 5.5 "
     "to "
     "9.7 ms; it is 11.5x on simt, where launches cost more; there "
     "is no vendor's figure, and the roofline of a model this small is launches"},
    {"04_sgemm",
     "kernel",
     60,
     {20, 32, 46},
     {20, 28, 36},
     "2048x2048x2048 (on simt 2048x2048x256), transposed B, against the starter's kernel",
     "on an H200 the baseline takes 18.7 ms and, by the bench, a plain tile in shared memory 2.1 "
     "(9x), 8x8 results a thread with vector loads 0.52 (36x); the solution is 49x measured, 41x "
     "modelled",
     "cuBLAS in fp32 would be 48x on an H200 (the solution is 1.02 of it); gold is 4% below, as "
     "clocks vary that much from run to run"},
    {"04_sgemm",
     "end_to_end",
     20,
     {3, 0, 0},
     {0, 0, 0},
     "BERT, a batch of sentences, against the same engine with the starter's kernel",
     "what is not matmul stays as it was: attention, norms, activations",
     NULL},
    {"05_layernorm_softmax",
     "layernorm",
     30,
     {15, 32, 38},
     {15, 40, 100},
     "LayerNorm fp32, 2048 rows of 8192 (on simt 256 of 2560), against the starter's thread a row",
     "bandwidth is the limit: neighbouring threads must read neighbouring elements, and a row have "
     "many threads",
     "the grader's clock also counts launch and wait, 21 to 27 us on an H200; with 24 of them the "
     "bench's times there make 29x of a block a row, 42x of 90% of a device-to-device copy's "
     "speed; "
     "the solution's graded runs are 38x to 47x, below 41x where all cores of the host were busy, "
     "and gold is the copy's 90% less a tenth; on simt "
     "the solution is 132x"},
    {"05_layernorm_softmax",
     "softmax",
     30,
     {15, 45, 53},
     {15, 40, 100},
     "softmax bf16, 2048 rows of 8192 (on simt 256 of 2560), against the starter's thread a row",
     "the same, and half the bytes",
     "the grader's clock also counts launch and wait, 20 to 30 us on an H200; with 25 of them the "
     "bench's times there make 42x of a block a row, 61x of 90% of a device-to-device copy's "
     "speed; "
     "the solution's graded runs are 50x to 71x, below 54x where all cores of the host were busy, "
     "and gold is the copy's 90% less an eighth; on "
     "simt the solution is 167x"},
    {"05_layernorm_softmax",
     "end_to_end",
     20,
     {2, 0, 0},
     {0, 0, 0},
     "BERT, one sentence, against the same engine with the starter's norms",
     "what is not a norm stays as it was: matmul and attention",
     NULL},
    {"06_fused_epilogues",
     "launches",
     20,
     {0, 0, 0},
     {0, 0, 0},
     "kernels of each fused operator",
     "what is fused is one launch or two, whatever the GPU",
     NULL},
    {"06_fused_epilogues",
     "epilogues",
     40,
     {2.5, 5, 10},
     {2.5, 5, 10},
     "the four linear layers of a BERT layer: time beyond their plain matmuls, against a launch "
     "for each operator",
     "what surrounds the matmul is read and written once, and not once an operator",
     "the solution's graded runs on an H200 are 13.4x to 18.4x; by the bench's rows of 8192 tokens "
     "it is 6.7x, ahead of compiled PyTorch; on simt 12.8x"},
    {"06_fused_epilogues",
     "model_is_not_slower",
     20,
     {0, 0, 0},
     {0, 0, 0},
     "BERT with the fused operators against the same with single ones",
     "a fusion that does not reach the model is not worth its code",
     NULL},
    {"07_attention",
     "kernel",
     30,
     {10, 18, 28},
     {8, 14, 22},
     "fp32, 12 heads of 64, 8 sequences of 512 (on simt 132 heads, 128), against the starter's "
     "block a query",
     "tiles in shared memory alone do not pass: each value read must serve several FMAs, in "
     "registers",
     "gold is where PyTorch's memory-efficient attention would be, less 3% for noise: by the bench "
     "on an H200 (16 sequences) the solution is 1.13 times as fast, and its graded runs are 31x to "
     "34x; it is 25.1x on simt"},
    {"07_attention",
     "kernel_bf16",
     30,
     {45, 90, 165},
     {20, 40, 65},
     "the same in bf16",
     "only tensor cores multiply that fast: the solution's fp32 kernel would be 39x on an H200",
     "gold is where FlashAttention-2 would be on the grader's clock, which counts launch and wait, "
     "too: by the bench on an H200 the solution is 1.2 times as fast, and its graded runs are 189x "
     "to 229x; it is 74.5x on simt; cuDNN's attention, 1.19 times the solution's speed by the "
     "bench, "
     "is not asked"},
    {"07_attention",
     "end_to_end",
     20,
     {2.5, 0, 0},
     {0, 0, 0},
     "BERT, packed texts of 256 to 512 tokens, against the same engine with the starter's kernel",
     "what is not attention stays as it was: matmul, norms, activations",
     NULL},
    {"08_bert_classifier",
     "launches",
     20,
     {0, 0, 0},
     {0, 0, 0},
     "kernels of one layer, at most",
     "each operator that is not a launch of its own saves one",
     NULL},
    {"08_bert_classifier",
     "encoder",
     40,
     {2, 2.4, 2.6},
     {2, 2.7, 3.1},
     "64 news articles of 24 to 124 tokens, only first rows wanted, against the starter's padded "
     "batch with a launch an operator",
     "58% of the padded rows are padding: without them it is 2.4x at best; fewer launches and a "
     "last layer that computes what is read bring the rest",
     "the solution is 2.75x to 2.82x on an H200 and 3.38x on simt; BERT on real lengths is then "
     "ahead of "
     "compiled PyTorch"},
    {"08_bert_classifier",
     "end_to_end",
     20,
     {2, 0, 0},
     {0, 0, 0},
     "the same articles from ids to logits, against the same engine with the starter's encoder",
     "pooler, classifier and the logits' way back stay as they were",
     NULL},
    {"09_kv_cache",
     "linear",
     30,
     {12, 15, 17.5},
     {12, 25, 40},
     "bf16, 8192 x 28672 (on simt 1024 x 4096) and a residual, against the starter's thread a row",
     "memory's speed is the limit: neighbouring threads must read neighbouring elements, and a row "
     "have many threads",
     "the solution's graded runs on an H200 are 18.3x to 21.3x, in 129 to 150 us with launch and "
     "wait, and 45x on simt; reading the weights at the speed of a probe that only reads takes 100 "
     "us, and gold is 157 us: as the solution was 0.81 of that probe for 4096 x 11008, 90% of the "
     "roofline is not asked"},
    {"09_kv_cache",
     "token",
     30,
     {30, 45, 60},
     {3.5, 4.2, 5},
     "attention of one layer at position 511 (on simt 31), bf16, against keys and values computed "
     "anew",
     "with a cache there is one row to compute, not all of them; on simt, where the text is short, "
     "it is latency that counts",
     "the solution is 122x by the bench on an H200, 48x to 99x on the grader's clock, which counts "
     "launch and wait, too (below 60x only where all cores of the host were busy), and 5.4x on "
     "simt"},
    {"09_kv_cache",
     "end_to_end",
     20,
     {8, 0, 0},
     {2.5, 0, 0},
     "Llama2 decode, 110M shape with 4 layers, 256 tokens from the first on (on simt a tiny one, "
     "16), against the same engine with the starter's operators",
     "what is not the lab's stays as it was: SwiGLU, the embedding, launches",
     NULL},
    {"10_llama2_decoder",
     "launches",
     10,
     {0, 0, 0},
     {0, 0, 0},
     "kernels of a token's layer, at most",
     "each operator that is not a launch of its own saves one",
     NULL},
    {"10_llama2_decoder",
     "decode",
     25,
     {2, 6, 16},
     {3, 4, 5},
     "steps behind a prompt, 8 layers of 512 channels, 32,000 tokens to draw from by top-p (on "
     "simt 2 of 256, 1000, greedy), against the starter's",
     "fewer launches and a token drawn on the GPU more than halve the time; simt has 3.5 us for a "
     "launch of its own and 0.1 for one in a graph, so that there the graph is asked for, too",
     "the solution, whose step is one graph, is 20x to 29x on an H200 and 5.6x on simt"},
    {"10_llama2_decoder",
     "prefill",
     25,
     {10, 30, 70},
     {10, 15, 25},
     "a prompt of 512 tokens (on simt 40) at once, against the starter's token by token",
     "a weight that is read once for all tokens: no way of feeding them one by one is a third as "
     "fast",
     "the solution, which reads each weight once for the whole prompt, is 79x to 123x on an H200 "
     "and 30x on simt"},
    {"10_llama2_decoder",
     "end_to_end",
     20,
     {2, 0, 0},
     {2.5, 0, 0},
     "a prompt of 64 tokens and 96 drawn ones (on simt 5 and 8) through the engine, against the "
     "same with the starter's decoder",
     "the engine and its copies of tokens stay as they were",
     NULL},
    {"11_training",
     "layernorm",
     20,
     {10, 20, 36},
     {8, 14, 20},
     "LayerNorm's gradient, bf16, 8192 rows of 768 (on simt 512), against the starter's thread a "
     "row and thread a column",
     "a warp a row that keeps sums of the columns reads each element once; one way after the other "
     "reads it twice",
     "the solution's graded runs on an H200 are 42x and 49x, 88x by the bench, whose clock does "
     "not count launch and wait; on simt it is 27x"},
    {"11_training",
     "attention",
     25,
     {25, 32, 40},
     {3, 5, 6.5},
     "attention's gradient, bf16, 16 texts of 256 tokens and 12 heads (on simt one text, 2 heads), "
     "against the starter's stored matrices",
     "only tensor cores multiply that fast: without them it is 18.6x at 128 tokens and 23.3x at "
     "512 "
     "by the bench on an H200; on simt, where so few blocks leave most of the GPU idle, latency "
     "counts",
     "on simt two launches on tensor cores, one for keys and one for queries, are 3.8x, and the "
     "solution is 6.9x; its graded runs on an H200 are 51x"},
    {"11_training",
     "adamw",
     15,
     {2, 2.4, 2.8},
     {2, 2.5, 3},
     "AdamW for 17 million parameters (on simt half a million) with a bf16 copy, against a kernel "
     "for each line of the formula",
     "30 bytes a parameter have to be moved, the starter moves 54 at half of the memory's speed",
     "the solution's graded runs on an H200 are 3.0x and 3.1x; by the bench it moves its bytes at "
     "99% of a "
     "copy's speed; on simt it is 3.5x, where launches count, too"},
    {"11_training",
     "end_to_end",
     20,
     {3, 0, 0},
     {2, 0, 0},
     "training steps of BERT in bf16, 4 layers of 768 channels, 16 texts of 256 tokens (on simt "
     "one "
     "layer of 256 and 3 texts), against the same engine with the starter's functions",
     "products, the forward pass and the other gradients stay as they were",
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

struct steps threshold_steps(const struct threshold *threshold, bool modelled) {
    return modelled && threshold->model.pass > 0.0 ? threshold->model : threshold->timed;
}

enum step threshold_step(const struct steps *steps, double speedup) {
    if (!(speedup >= steps->pass)) {
        return STEP_NONE;
    }
    if (!(steps->gold > 0.0) || speedup >= steps->gold) {
        return STEP_GOLD;
    }
    return speedup >= steps->good ? STEP_GOOD : STEP_PASS;
}

int threshold_points(const struct threshold *threshold, enum step step) {
    static const int percent[] = {
        [STEP_NONE] = 0, [STEP_PASS] = 60, [STEP_GOOD] = 80, [STEP_GOLD] = 100};
    return threshold->points * percent[step] / 100;
}
