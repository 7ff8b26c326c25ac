/* generate on the CPU reference, for tests. */
#include "common/model/generate.h"

static enum status create(struct engine *engine, int threads) {
    (void)threads;
    return engine_reference_create(engine);
}

int main(int argc, char **argv) {
    return generate_main(argc, argv, create);
}
