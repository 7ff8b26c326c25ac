#include "grader/harness/fixture.h"

#include "common/testing/testing.h"
#include "grader/harness/gpu.h"
#include "grader/harness/seed.h"

static enum status create(struct fixture *fixture, size_t workspace_bytes, struct error *error) {
    TRY(device_stream_create(&fixture->stream, error));
    return workspace_bytes > 0 ? device_alloc(&fixture->workspace, workspace_bytes, error)
                               : STATUS_OK;
}

bool fixture_open(struct fixture *fixture, size_t workspace_bytes) {
    struct error error = {0};
    struct grader_gpu gpu;
    *fixture = (struct fixture){0};
    if (!grader_gpu_open(&gpu)) {
        return false;
    }
    enum status status = create(fixture, workspace_bytes, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s", error_text(&error, status));
        return false;
    }
    fixture->modelled = gpu.modelled;
    fixture->rng = grader_rng();
    return true;
}

bool fixture_has_guards(struct fixture *fixture) {
    return !fixture->modelled || fixture->cases++ % 2 == 1;
}

void fixture_close(struct fixture *fixture) {
    device_free(fixture->workspace);
    device_stream_destroy(fixture->stream);
}
