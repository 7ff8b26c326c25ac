#include "grader/harness/bed.h"

#include "common/testing/testing.h"
#include "grader/harness/gpu.h"
#include "grader/harness/own_work.h"
#include "grader/harness/seed.h"

bool bed_open(struct bed *bed, size_t workspace_bytes) {
    struct error error = {0};
    struct grader_gpu gpu;
    *bed = (struct bed){0};
    if (!grader_gpu_open(&gpu)) {
        return false;
    }
    enum status status = device_stream_create(&bed->stream, &error);
    if (status == STATUS_OK && workspace_bytes > 0) {
        status = device_alloc(&bed->workspace, workspace_bytes, &error);
    }
    if (status != STATUS_OK) {
        TEST_FAIL("%s", error_text(&error, status));
        return false;
    }
    bed->modelled = gpu.modelled;
    bed->rng = rng_create(grader_seed());
    return true;
}

bool bed_guards(struct bed *bed) {
    return !bed->modelled || bed->cases++ % 2 == 1;
}

void bed_close(struct bed *bed) {
    grader_check_own_work();
    device_free(bed->workspace);
    device_stream_destroy(bed->stream);
}
