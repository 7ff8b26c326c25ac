/* Writes text with a Llama2 checkpoint on an engine of the course. */
#include "common/programs/decoder/generate.h"
#include "labs/10_llama2_decoder/given/stages.h"

int main(int argc, char **argv) {
    return generate_main(argc, argv, decoder_stages_of_the_course());
}
