#include "grader/thresholds.h"

#include <stddef.h>
#include <string.h>

/*
 * A speedup is a ratio of two times from one run on one machine. A solution
 * must clear its threshold by a quarter (--config=solutions checks that), and a
 * starter, which is the baseline itself, reaches at most half of it.
 */
static const struct threshold thresholds[] = {
    {"01_cpu_matmul", "kernel", 8.0, 0, "512x512x512 against the naive triple loop",
     "one core with cache blocking and vectors passes; threads alone do not on eight cores or "
     "fewer"},
    {"01_cpu_matmul", "end_to_end", 2.0, 0,
     "Llama2 decode, 15M shape, against the same engine with the naive triple loop",
     "decoding is one row at a time: bandwidth, not arithmetic, sets the limit"},
    {"02_gpu_matmul", "kernel", 4.0, 0, "1x5632x2048 against one thread an output",
     "every byte of a sector used, and blocks enough for the whole GPU"},
    {"03_resident_weights", "end_to_end", 4.0, 0,
     "Llama2 decode, 15M shape, against solved lab 02, which copies the weights for each token",
     "the bus is dozens of times narrower than the GPU's memory; launches take most of that back"},
    {"04_sgemm", "kernel", 20.0, 0,
     "2048x2048x2048 (on simt 2048x2048x256), transposed B, against the starter's kernel",
     "on an H200 the baseline takes 18.7 ms and, by the bench, a plain tile in shared memory 2.1 "
     "(9x), 8x8 results a thread with vector loads 0.52 (36x); the solution is 49x measured, 41x "
     "modelled"},
    {"04_sgemm", "end_to_end", 3.0, 0,
     "BERT, a batch of sentences, against the same engine with the starter's kernel",
     "what is not matmul stays as it was: attention, norms, activations"},
    {"05_layernorm_softmax", "layernorm", 15.0, 0,
     "LayerNorm fp32, 2048 rows of 2560 (on simt 256), against the starter's thread a row",
     "bandwidth is the limit: neighbouring threads must read neighbouring elements, and a row have "
     "many threads"},
    {"05_layernorm_softmax", "softmax", 15.0, 0,
     "softmax bf16, 2048 rows of 2560 (on simt 256), against the starter's thread a row",
     "the same, and half the bytes"},
    {"05_layernorm_softmax", "end_to_end", 2.0, 0,
     "BERT, one sentence, against the same engine with the starter's norms",
     "what is not a norm stays as it was: matmul and attention"},
    {"06_fused_epilogues", "epilogues", 2.5, 0,
     "the four linear layers of a BERT layer: time beyond their plain matmuls, against a launch "
     "for each operator",
     "what surrounds the matmul is read and written once, and not once an operator"},
    {"07_attention", "kernel", 8.0, 0,
     "fp32, 12 heads of 64, 8 sequences of 512 (on simt 132 heads, 128), against the starter's "
     "block "
     "a query",
     "tiles in shared memory alone do not pass: each value read must serve several FMAs, in "
     "registers"},
    {"07_attention", "kernel_bf16", 20.0, 0, "the same in bf16",
     "only tensor cores multiply that fast"},
    {"07_attention", "end_to_end", 2.5, 0,
     "BERT, packed texts of 256 to 512 tokens, against the same engine with the starter's kernel",
     "what is not attention stays as it was: matmul, norms, activations"},
    {"08_bert_classifier", "encoder", 2.0, 0,
     "64 news articles of 24 to 124 tokens, only first rows wanted, against the starter's padded "
     "batch with a launch an operator",
     "58% of the padded rows are padding: without them it is 2.4x at best; fewer launches and a "
     "last layer that computes what is read bring the rest"},
    {"08_bert_classifier", "end_to_end", 2.0, 0,
     "the same articles from ids to logits, against the same engine with the starter's encoder",
     "pooler, classifier and the logits' way back stay as they were"},
    {"09_kv_cache", "linear", 12.0, 0,
     "bf16, 4096 x 11008 (on simt 1024 x 4096) and a residual, against the starter's thread a row",
     "memory's speed is the limit: neighbouring threads must read neighbouring elements, and a row "
     "have many threads"},
    {"09_kv_cache", "token", 30.0, 3.5,
     "attention of one layer at position 511 (on simt 31), bf16, against keys and values computed "
     "anew",
     "with a cache there is one row to compute, not all of them; on simt, where the text is short, "
     "it is latency that counts"},
    {"09_kv_cache", "end_to_end", 8.0, 2.5,
     "Llama2 decode, 110M shape with 4 layers, 256 tokens from the first on (on simt a tiny one, "
     "16), against the same engine with the starter's operators",
     "what is not the lab's stays as it was: SwiGLU, the embedding, launches"},
    {"10_llama2_decoder", "decode", 2.0, 3.0,
     "steps behind a prompt, 8 layers of 512 channels, 32,000 tokens to draw from by top-p (on "
     "simt 2 of 256, 1000, greedy), against the starter's",
     "fewer launches and a token drawn on the GPU more than halve the time; simt has 3.5 us for a "
     "launch of "
     "its own and 0.1 for one in a graph, so that there the graph is asked for, too"},
    {"10_llama2_decoder", "prefill", 10.0, 0,
     "a prompt of 512 tokens (on simt 40) at once, against the starter's token by token",
     "a weight that is read once for all tokens: no way of feeding them one by one is a third as "
     "fast"},
    {"10_llama2_decoder", "end_to_end", 2.0, 2.5,
     "a prompt of 64 tokens and 96 drawn ones (on simt 5 and 8) through the engine, against the "
     "same with the starter's decoder",
     "the engine and its copies of tokens stay as they were"},
};

const struct threshold *threshold_find(const char *lab, const char *measure) {
    for (size_t i = 0; i < sizeof thresholds / sizeof *thresholds; i++) {
        if (strcmp(thresholds[i].lab, lab) == 0 && strcmp(thresholds[i].measure, measure) == 0) {
            return &thresholds[i];
        }
    }
    return NULL;
}
