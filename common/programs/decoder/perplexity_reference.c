/* The perplexity program with stages of the CPU reference, for tests. */
#include "common/programs/decoder/perplexity.h"
#include "common/programs/decoder/reference_stages.h"

int main(int argc, char **argv) {
    return perplexity_main(argc, argv, reference_stages());
}
