/* Says how well a Llama2 checkpoint predicts a text, on an engine of the course. */
#include "common/programs/decoder/perplexity.h"
#include "labs/10_llama2_decoder/given/stages.h"

int main(int argc, char **argv) {
    return perplexity_main(argc, argv, decoder_stages_of_the_course());
}
