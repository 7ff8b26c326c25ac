/* Says how well a Llama2 checkpoint predicts a text, on an engine of this lab. */
#include "common/programs/decoder/perplexity.h"
#include "labs/14_endless_text/given/stages.h"

int main(int argc, char **argv) {
    return perplexity_main(argc, argv, endless_stages());
}
