/* perplexity on stages of the CPU reference, for tests. */
#include "common/model/perplexity.h"
#include "common/model/reference_stages.h"

int main(int argc, char **argv) {
    return perplexity_main(argc, argv, reference_stages());
}
