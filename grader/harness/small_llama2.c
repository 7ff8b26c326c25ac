#include "grader/harness/small_llama2.h"

#include "common/models/llama2_random.h"

struct small_llama2 small_llama2(void) {
    struct llama2_config config = llama2_shape_config(LLAMA2_SHAPE_15M);
    config.C = 60;
    config.hidden = 172;
    config.NH = 6;
    config.KVH = 3;
    config.HS = 10;
    config.V = SMALL_LLAMA2_V;
    config.T = SMALL_LLAMA2_TOKENS;
    return (struct small_llama2){
        .config = config, .tokens = {1, 17, 42, 5, 99, 3, 64, 12}, .prompt = 7, .count = 8};
}
