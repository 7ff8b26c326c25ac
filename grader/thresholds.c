#include "grader/thresholds.h"

#include <string.h>

/*
 * A speedup is the ratio of two times from one run on one machine. A solution
 * must clear its threshold by a quarter (--config=solutions checks that), and a
 * starter, which is the baseline itself, reaches at most half of it.
 *
 * A lab has 100 points. Parity brings 20 and no more, because the starter has
 * it, too. The subject of the lab brings 60 or 80, in steps, as a kernel that
 * passes is not yet a good one. A faster model brings 20: all or, from 1.1x on,
 * half; a lab without a model to speed up counts something that it does for one.
 * A row with steps of 0 is counted, not timed.
 */
static const struct threshold thresholds[] = {
    {"01_cpu_matmul",
     "kernel",
     60,
     {0.1, 0.3, 0.6},
     {0, 0, 0},
     "LIMIT",
     "512x512x512 against the naive triple loop",
     "one core with cache blocking and vectors passes; threads alone do not on eight cores or "
     "fewer",
     "cache blocking and vectors reach 23x on an idle core of an EPYC, register tiles 53x, two "
     "cores 100x, level with OpenBLAS; the solution's graded runs beside other work gave 39x and "
     "67x, so gold asks for no more than a register tile; being ahead of OpenBLAS is not asked, "
     "because its speed depends on whether it knows the CPU"},
    {"01_cpu_matmul",
     "end_to_end",
     20,
     {0.1, 0, 0},
     {0, 0, 0},
     "LIMIT",
     "Llama2 decode, 15M shape, against the same engine with the naive triple loop",
     "decoding is one row at a time: bandwidth, not arithmetic, sets the limit",
     NULL},
    {"02_gpu_matmul",
     "kernel",
     60,
     {0.1, 0.3, 0.6},
     {0, 0, 0},
     "LIMIT",
     "1x5632x2048 against one thread an output",
     "every byte of a loaded sector must be used, and there must be enough blocks for the whole "
     "GPU",
     "in the bench a block per output is 11.6x on an H200 and 10.6x on simt, a warp per output "
     "15.2x and 18.6x; the solution's graded runs are 13.2x to 14.3x and 19.3x, which is half of "
     "the roofline: 90% of it is the subject of lab 09"},
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
     {0.1, 0.3, 0.6},
     {0, 0, 0},
     "LIMIT",
     "Llama2 decode, 15M shape, against solved lab 02, which copies the weights for each token",
     "the bus is dozens of times narrower than the GPU's memory; the cost of launches takes most "
     "of that gain back",
     "the solution's graded runs on an H200 are 18x to 34x, against a baseline of copies that took "
     "5.5 to 9.7 ms; on simt, where launches cost more, it is 11.5x; there is no vendor's figure, "
     "and the cost of launches bounds a model this small, not the roofline"},
    {"04_sgemm",
     "kernel",
     60,
     {0.1, 0.3, 0.6},
     {0, 0, 0},
     "LIMIT",
     "2048x2048x2048 (on simt 2048x2048x256), transposed B, against the starter's kernel",
     "on an H200 the baseline takes 18.7 ms and, by the bench, a plain tile in shared memory 2.1 "
     "(9x), 8x8 results a thread with vector loads 0.52 (36x); the solution is 49x measured, 41x "
     "modelled",
     "cuBLAS in fp32 would be 48x on an H200 (the solution is 1.02 of it); gold is 4% below, as "
     "clocks vary that much from run to run"},
    {"04_sgemm",
     "end_to_end",
     20,
     {0.1, 0, 0},
     {0, 0, 0},
     "LIMIT",
     "BERT, a batch of sentences, against the same engine with the starter's kernel",
     "attention, norms and activations stay as they were",
     NULL},
    {"05_layernorm_softmax",
     "layernorm",
     30,
     {0.1, 0.3, 0.6},
     {0, 0, 0},
     "LIMIT",
     "LayerNorm fp32, 2048 rows of 8192 (on simt 256 of 2560), against the starter's thread a row",
     "bandwidth is the limit: neighbouring threads must read neighbouring elements, and each row "
     "needs many threads",
     "the grader's clock also counts launch and wait, 21 to 27 us on an H200; with 24 us added, "
     "the bench's times there give 29x for a block per row and 42x for 90% of the speed of a "
     "device-to-device copy; the solution's graded runs are 38x to 47x, below 41x where all cores "
     "of the host were busy, and gold is those 42x less a tenth; on simt the solution is 132x"},
    {"05_layernorm_softmax",
     "softmax",
     30,
     {0.1, 0.3, 0.6},
     {0, 0, 0},
     "LIMIT",
     "softmax bf16, 2048 rows of 8192 (on simt 256 of 2560), against the starter's thread a row",
     "bandwidth is the limit here, too, with half the bytes",
     "the grader's clock also counts launch and wait, 20 to 30 us on an H200; with 25 us added, "
     "the bench's times there give 42x for a block per row and 61x for 90% of the speed of a "
     "device-to-device copy; the solution's graded runs are 50x to 71x, below 54x where all cores "
     "of the host were busy, and gold is those 61x less an eighth; on simt the solution is 167x"},
    {"05_layernorm_softmax",
     "end_to_end",
     20,
     {0.1, 0, 0},
     {0, 0, 0},
     "LIMIT",
     "BERT, one sentence, against the same engine with the starter's norms",
     "matmul and attention stay as they were",
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
     {0.1, 0.3, 0.6},
     {0, 0, 0},
     "LIMIT",
     "the four linear layers of a BERT layer: time beyond their plain matmuls, against a launch "
     "for each operator",
     "the data around the matmul is read and written once, not once per operator",
     "the solution's graded runs on an H200 are 13.4x to 18.4x; in the bench, for 8192 tokens, it "
     "is 6.7x, ahead of compiled PyTorch; on simt 12.8x"},
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
     {0.1, 0.3, 0.6},
     {0, 0, 0},
     "LIMIT",
     "fp32, 12 heads of 64, 8 sequences of 512 (on simt 132 heads, 128), against the starter's "
     "block a query",
     "tiles in shared memory alone do not pass: each value read must serve several FMAs, in "
     "registers",
     "gold is the speed of PyTorch's memory-efficient attention, less 3% for noise: in the bench "
     "on an H200 (16 sequences) the solution is 1.13 times as fast as that, and its graded runs "
     "are 31x to 34x; on simt it is 25.1x"},
    {"07_attention",
     "kernel_bf16",
     30,
     {0.1, 0.3, 0.6},
     {0, 0, 0},
     "LIMIT",
     "the same in bf16",
     "only tensor cores multiply that fast: the solution's fp32 kernel would be 39x on an H200",
     "gold is the speed of FlashAttention-2 on the grader's clock, which counts launch and wait, "
     "too: in the bench on an H200 the solution is 1.2 times as fast as that, and its graded runs "
     "are 189x to 229x; on simt it is 74.5x; the speed of cuDNN's attention, 1.19 times the "
     "solution's in the bench, is not asked"},
    {"07_attention",
     "end_to_end",
     20,
     {0.1, 0, 0},
     {0, 0, 0},
     "LIMIT",
     "BERT, packed texts of 256 to 512 tokens (on simt 192 to 384), against the same engine with "
     "the starter's kernel",
     "matmul, norms and activations stay as they were",
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
     {0.1, 0.3, 0.6},
     {0, 0, 0},
     "LIMIT",
     "64 news articles of 24 to 124 tokens, only first rows wanted, against the starter's padded "
     "batch with a launch an operator",
     "58% of the padded batch's rows are padding: leaving them out gives 2.4x at best; fewer "
     "launches, and a last layer that computes only the rows that are read, give the rest",
     "the solution is 2.75x to 2.82x on an H200 and 3.38x on simt; BERT on real lengths is then "
     "ahead of compiled PyTorch"},
    {"08_bert_classifier",
     "end_to_end",
     20,
     {0.1, 0, 0},
     {0, 0, 0},
     "LIMIT",
     "the same articles from ids to logits, against the same engine with the starter's encoder",
     "the pooler, the classifier and the copy of the logits stay as they were",
     NULL},
    {"09_kv_cache",
     "linear",
     30,
     {0.1, 0.3, 0.6},
     {0, 0, 0},
     "LIMIT",
     "bf16, 8192 x 28672 (on simt 1024 x 4096) and a residual, against the starter's thread a row",
     "memory's speed is the limit: neighbouring threads must read neighbouring elements, and a row "
     "have many threads",
     "the solution's graded runs on an H200 are 18.3x to 21.3x, in 129 to 150 us with launch and "
     "wait, and 45x on simt; a probe that only reads needs 100 us for the weights, and gold is 157 "
     "us: 90% of the roofline is not asked, because the solution reached 0.81 of that probe's "
     "speed at 4096 x 11008"},
    {"09_kv_cache",
     "token",
     30,
     {0.1, 0.3, 0.6},
     {0, 0, 0},
     "LIMIT",
     "attention of one layer at position 511 (on simt 31), bf16, against keys and values computed "
     "anew",
     "with a cache there is one row to compute, not all of them; on simt, where the text is short, "
     "latency counts",
     "the solution is 122x in the bench on an H200, 48x to 99x on the grader's clock, which counts "
     "launch and wait, too (below 60x only where all cores of the host were busy), and 5.4x on "
     "simt"},
    {"09_kv_cache",
     "end_to_end",
     20,
     {0.1, 0, 0},
     {0, 0, 0},
     "LIMIT",
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
     {0.1, 0.3, 0.6},
     {0, 0, 0},
     "LIMIT",
     "steps behind a prompt, 8 layers of 512 channels, 32,000 tokens to draw from by top-p (on "
     "simt 2 layers of 256, 1000 tokens, greedy), against the starter's",
     "fewer launches and a token drawn on the GPU more than halve the time; simt charges 3.5 us "
     "for a launch of its own and 0.1 us for one in a graph, so there the graph is needed, too",
     "the solution, whose step is one graph, is 20x to 29x on an H200 and 5.6x on simt"},
    {"10_llama2_decoder",
     "prefill",
     25,
     {0.1, 0.3, 0.6},
     {0, 0, 0},
     "LIMIT",
     "a prompt of 512 tokens (on simt 40) at once, against the starter's token by token",
     "each weight is read once for all tokens: feeding them one by one is never a third as fast",
     "the solution, which reads each weight once for the whole prompt, is 79x to 123x on an H200 "
     "and 30x on simt"},
    {"10_llama2_decoder",
     "end_to_end",
     20,
     {0.1, 0, 0},
     {0, 0, 0},
     "LIMIT",
     "a prompt of 64 tokens and 96 drawn ones (on simt 5 and 8) through the engine, against the "
     "same with the starter's decoder",
     "the engine and its copies of tokens stay as they were",
     NULL},
    {"11_training",
     "layernorm",
     20,
     {0.1, 0.3, 0.6},
     {0, 0, 0},
     "LIMIT",
     "LayerNorm's gradient, bf16, 8192 rows of 768 (on simt 512), against the starter's thread a "
     "row and thread a column",
     "a warp per row that also sums up the columns reads each element once; rows first and columns "
     "afterwards read it twice",
     "the solution's graded runs on an H200 are 42x and 49x, 88x in the bench, whose clock does "
     "not count launch and wait; on simt it is 27x"},
    {"11_training",
     "attention",
     25,
     {0.1, 0.3, 0.6},
     {0, 0, 0},
     "LIMIT",
     "attention's gradient, bf16, 16 texts of 256 tokens and 12 heads (on simt one text, 2 heads), "
     "against the starter's stored matrices",
     "only tensor cores multiply that fast: without them the bench on an H200 gives 18.6x at 128 "
     "tokens and 23.3x at 512; on simt, where so few blocks leave most of the GPU idle, latency "
     "counts",
     "on simt two launches on tensor cores, one for keys and one for queries, are 3.8x, and the "
     "solution is 6.9x; its graded runs on an H200 are 51x"},
    {"11_training",
     "adamw",
     15,
     {0.1, 0.3, 0.6},
     {0, 0, 0},
     "LIMIT",
     "AdamW for 17 million parameters (on simt half a million) with a bf16 copy, against a kernel "
     "for each line of the formula",
     "30 bytes per parameter have to be moved; the starter moves 54, at half of the memory's speed",
     "the solution's graded runs on an H200 are 3.0x and 3.1x; in the bench it moves its bytes at "
     "99% of a copy's speed; on simt it is 3.5x, where launches count, too"},
    {"11_training",
     "end_to_end",
     20,
     {0.1, 0, 0},
     {0, 0, 0},
     "LIMIT",
     "training steps of BERT in bf16, 4 layers of 768 channels, 16 texts of 256 tokens (on simt "
     "one layer of 256 and 3 texts), against the same engine with the starter's functions",
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

struct steps threshold_shares(const struct threshold *threshold, bool modelled) {
    return modelled && threshold->model.pass > 0.0 ? threshold->model : threshold->shares;
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
