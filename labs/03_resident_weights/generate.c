/* Writes text with a Llama2 checkpoint on the engine of this stage. */
#include "common/model/generate.h"
#include "labs/03_resident_weights/engine.h"

/* The host only launches and samples: one thread does. */
static enum status create_engine(struct engine *engine, int threads, struct error *error) {
    (void)threads;
    return engine_resident_create(engine, error);
}

int main(int argc, char **argv) {
    return generate_main(argc, argv, create_engine);
}
