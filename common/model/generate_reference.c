/* generate on stages of the CPU reference, for tests. */
#include "common/model/generate.h"
#include "common/model/reference_stages.h"

int main(int argc, char **argv) {
    return generate_main(argc, argv, reference_stages());
}
