/*
 * Conditional nodes of graphs. What is wanted follows from CUDA's documentation; not compared with
 * a GPU, whose device runtime the kernels would have to be linked with.
 */
#include <stdbool.h>

#include <cuda_runtime_api.h>

#include "common/simt/runtime/testdata/checks.h"
#include "common/simt/runtime/testdata/conditions.h"
#include "common/testing/fixture.h"

enum { VALUES = 4 };

/* A graph, and ints on the device for its kernels. */
struct scene {
    cudaGraph_t graph;
    int *d_values; /* (VALUES) zeros */
};

static bool create(struct scene *s) {
    return cudaGraphCreate(&s->graph, 0) == cudaSuccess &&
           cudaMalloc((void **)&s->d_values, VALUES * sizeof(int)) == cudaSuccess &&
           cudaMemset(s->d_values, 0, VALUES * sizeof(int)) == cudaSuccess;
}

static void destroy(struct scene *s) {
    WANT(cudaSuccess, cudaGraphDestroy(s->graph));
    WANT(cudaSuccess, cudaFree(s->d_values));
}

#define SCENE_TEST(name) FIXTURE_TEST(condition, name, struct scene, s, create(s), destroy(s))

static void set_value(struct scene *s, int index, int value) {
    WANT(cudaSuccess,
         cudaMemcpy(s->d_values + index, &value, sizeof value, cudaMemcpyHostToDevice));
}

static int value_of(struct scene *s, int index) {
    int value = -1;
    WANT(cudaSuccess,
         cudaMemcpy(&value, s->d_values + index, sizeof value, cudaMemcpyDeviceToHost));
    return value;
}

static cudaGraphConditionalHandle new_handle(cudaGraph_t graph, unsigned initial, unsigned flags) {
    cudaGraphConditionalHandle handle = 0;
    WANT(cudaSuccess, cudaGraphConditionalHandleCreate(&handle, graph, initial, flags));
    EXPECT_TRUE(handle != 0);
    return handle;
}

/* A kernel of `blocks` blocks of one thread. */
static cudaGraphNode_t put_kernel(cudaGraph_t graph, const cudaGraphNode_t *after,
                                  const void *kernel, unsigned blocks, void **arguments) {
    cudaGraphNode_t node = NULL;
    struct cudaGraphNodeParams parameters = {.type = cudaGraphNodeTypeKernel,
                                             .kernel = {.func = (void *)(uintptr_t)kernel,
                                                        .gridDim = {blocks, 1, 1},
                                                        .blockDim = {1, 1, 1},
                                                        .kernelParams = arguments}};
    WANT(cudaSuccess,
         cudaGraphAddNode(&node, graph, after, NULL, after != NULL ? 1 : 0, &parameters));
    return node;
}

static cudaGraphNode_t put_add(struct scene *s, cudaGraph_t graph, int index, int amount) {
    int *to = s->d_values + index;
    void *arguments[] = {&to, &amount};
    return put_kernel(graph, NULL, kernel_add(), 1, arguments);
}

/* Sets a condition by a value on the device. */
static cudaGraphNode_t put_setter(struct scene *s, cudaGraph_t graph, const cudaGraphNode_t *after,
                                  const void *kernel, cudaGraphConditionalHandle handle,
                                  int index) {
    int *n = s->d_values + index;
    void *arguments[] = {&handle, &n};
    return put_kernel(graph, after, kernel, 1, arguments);
}

static struct cudaGraphNodeParams conditional(cudaGraphConditionalHandle handle,
                                              enum cudaGraphConditionalNodeType type,
                                              unsigned size) {
    return (struct cudaGraphNodeParams){
        .type = cudaGraphNodeTypeConditional,
        .conditional = {.handle = handle, .type = type, .size = size}};
}

/* @return the graphs of its bodies */
static cudaGraph_t *put_condition(cudaGraph_t graph, const cudaGraphNode_t *after,
                                  cudaGraphConditionalHandle handle,
                                  enum cudaGraphConditionalNodeType type, unsigned size) {
    static cudaGraph_t none[VALUES];
    cudaGraphNode_t node = NULL;
    enum cudaGraphNodeType found = cudaGraphNodeTypeEmpty;
    struct cudaGraphNodeParams parameters = conditional(handle, type, size);
    WANT(cudaSuccess,
         cudaGraphAddNode(&node, graph, after, NULL, after != NULL ? 1 : 0, &parameters));
    WANT(cudaSuccess, cudaGraphNodeGetType(node, &found));
    EXPECT_INT_EQ(cudaGraphNodeTypeConditional, found);
    EXPECT_TRUE(parameters.conditional.phGraph_out != NULL);
    return parameters.conditional.phGraph_out != NULL ? parameters.conditional.phGraph_out : none;
}

static cudaGraphExec_t ready(struct scene *s) {
    cudaGraphExec_t executable = NULL;
    WANT(cudaSuccess, cudaGraphInstantiate(&executable, s->graph, 0));
    return executable;
}

static void launch(cudaGraphExec_t executable) {
    WANT(cudaSuccess, cudaGraphLaunch(executable, NULL));
    WANT(cudaSuccess, cudaDeviceSynchronize());
}

SCENE_TEST(if_runs_its_body_or_the_other_one) {
    cudaGraphConditionalHandle handle = new_handle(s->graph, 0, 0);
    cudaGraphNode_t setter = put_setter(s, s->graph, NULL, kernel_choose(), handle, 0);
    cudaGraph_t *bodies = put_condition(s->graph, &setter, handle, cudaGraphCondTypeIf, 2);
    (void)put_add(s, bodies[0], 1, 10);
    (void)put_add(s, bodies[1], 2, 100);
    cudaGraphExec_t executable = ready(s);
    launch(executable);
    EXPECT_INT_EQ(0, value_of(s, 1));
    EXPECT_INT_EQ(100, value_of(s, 2));
    set_value(s, 0, 3);
    launch(executable);
    EXPECT_INT_EQ(10, value_of(s, 1));
    EXPECT_INT_EQ(100, value_of(s, 2));
    WANT(cudaSuccess, cudaGraphExecDestroy(executable));
}

SCENE_TEST(if_without_another_body_runs_nothing) {
    cudaGraphConditionalHandle handle = new_handle(s->graph, 0, cudaGraphCondAssignDefault);
    cudaGraph_t *bodies = put_condition(s->graph, NULL, handle, cudaGraphCondTypeIf, 1);
    (void)put_add(s, bodies[0], 1, 10);
    cudaGraphExec_t executable = ready(s);
    launch(executable);
    EXPECT_INT_EQ(0, value_of(s, 1));
    WANT(cudaSuccess, cudaGraphExecDestroy(executable));
}

/* The default value counts anew in each launch. */
SCENE_TEST(while_runs_its_body_until_a_kernel_says_so) {
    cudaGraphConditionalHandle handle = new_handle(s->graph, 1, cudaGraphCondAssignDefault);
    cudaGraph_t *bodies = put_condition(s->graph, NULL, handle, cudaGraphCondTypeWhile, 1);
    (void)put_add(s, bodies[0], 1, 1);
    (void)put_setter(s, bodies[0], NULL, kernel_count_down(), handle, 0);
    cudaGraphExec_t executable = ready(s);
    set_value(s, 0, 7);
    launch(executable);
    EXPECT_INT_EQ(7, value_of(s, 1));
    set_value(s, 0, 3);
    launch(executable);
    EXPECT_INT_EQ(10, value_of(s, 1));
    EXPECT_INT_EQ(0, value_of(s, 0));
    WANT(cudaSuccess, cudaGraphExecDestroy(executable));
}

/* The condition stays what it is while nobody sets it. */
SCENE_TEST(while_goes_on_until_a_kernel_sets_its_condition_at_last) {
    cudaGraphConditionalHandle handle = new_handle(s->graph, 1, cudaGraphCondAssignDefault);
    cudaGraph_t *bodies = put_condition(s->graph, NULL, handle, cudaGraphCondTypeWhile, 1);
    (void)put_setter(s, bodies[0], NULL, kernel_stop_at_zero(), handle, 0);
    cudaGraphExec_t executable = ready(s);
    set_value(s, 0, 10);
    launch(executable);
    EXPECT_INT_EQ(0, value_of(s, 0));
    WANT(cudaSuccess, cudaGraphExecDestroy(executable));
}

SCENE_TEST(switch_runs_the_body_of_its_number) {
    cudaGraphConditionalHandle handle = new_handle(s->graph, 0, 0);
    cudaGraphNode_t setter = put_setter(s, s->graph, NULL, kernel_choose(), handle, 0);
    cudaGraph_t *bodies = put_condition(s->graph, &setter, handle, cudaGraphCondTypeSwitch, 3);
    for (int n = 0; n < 3; n++) {
        (void)put_add(s, bodies[n], 1, n == 0 ? 1 : n == 1 ? 10 : 100);
    }
    cudaGraphExec_t executable = ready(s);
    static const int sums[] = {1, 11, 111, 111};
    for (int value = 0; value < 4; value++) {
        set_value(s, 0, value);
        launch(executable);
        EXPECT_INT_EQ(sums[value], value_of(s, 1));
    }
    WANT(cudaSuccess, cudaGraphExecDestroy(executable));
}

/* In the body of a loop an IF node, whose condition belongs to the whole graph; its own body is
 * captured. */
SCENE_TEST(bodies_have_conditional_nodes_and_are_captured) {
    cudaGraphConditionalHandle loop = new_handle(s->graph, 1, cudaGraphCondAssignDefault);
    cudaGraphConditionalHandle inner = new_handle(s->graph, 0, 0);
    cudaGraph_t body = put_condition(s->graph, NULL, loop, cudaGraphCondTypeWhile, 1)[0];
    cudaGraphNode_t first = put_setter(s, body, NULL, kernel_count_down(), loop, 0);
    cudaGraphNode_t setter = put_setter(s, body, &first, kernel_choose(), inner, 0);
    cudaGraph_t captured = put_condition(body, &setter, inner, cudaGraphCondTypeIf, 1)[0], ended;
    cudaStream_t stream = NULL;
    int *to = s->d_values + 1, amount = 1;
    void *arguments[] = {&to, &amount};
    const dim3 one = {1, 1, 1};
    WANT(cudaSuccess, cudaStreamCreate(&stream));
    WANT(cudaSuccess, cudaStreamBeginCaptureToGraph(stream, captured, NULL, NULL, 0,
                                                    cudaStreamCaptureModeGlobal));
    WANT(cudaSuccess, cudaLaunchKernel(kernel_add(), one, one, arguments, 0, stream));
    WANT(cudaSuccess, cudaStreamEndCapture(stream, &ended));
    cudaGraphExec_t executable = ready(s);
    set_value(s, 0, 5);
    launch(executable);
    EXPECT_INT_EQ(4, value_of(s, 1)); /* not where the count is 0 */
    WANT(cudaSuccess, cudaGraphExecDestroy(executable));
    WANT(cudaSuccess, cudaStreamDestroy(stream));
}

/* Blocks set it one after the other, on however many threads of the host. */
SCENE_TEST(the_last_block_counts) {
    enum { BLOCKS = 64 };
    cudaGraphConditionalHandle handle = new_handle(s->graph, 0, 0);
    void *arguments[] = {&handle};
    cudaGraphNode_t setter = put_kernel(s->graph, NULL, kernel_set_by_all(), BLOCKS, arguments);
    cudaGraph_t *bodies = put_condition(s->graph, &setter, handle, cudaGraphCondTypeSwitch, BLOCKS);
    (void)put_add(s, bodies[BLOCKS - 1], 1, 1);
    cudaGraphExec_t executable = ready(s);
    launch(executable);
    EXPECT_INT_EQ(1, value_of(s, 1));
    WANT(cudaSuccess, cudaGraphExecDestroy(executable));
}

/* A graph may change and go once it has been made executable; nodes are found in copies of bodies.
 */
SCENE_TEST(an_executable_graph_has_bodies_of_its_own) {
    cudaGraphConditionalHandle handle = new_handle(s->graph, 1, cudaGraphCondAssignDefault);
    cudaGraph_t *bodies = put_condition(s->graph, NULL, handle, cudaGraphCondTypeIf, 2);
    cudaGraphNode_t node = put_add(s, bodies[0], 1, 10);
    cudaGraphExec_t executable = ready(s);
    int *to = s->d_values + 1, amount = 20;
    void *arguments[] = {&to, &amount};
    const struct cudaKernelNodeParams parameters = {.func = (void *)(uintptr_t)kernel_add(),
                                                    .gridDim = {1, 1, 1},
                                                    .blockDim = {1, 1, 1},
                                                    .kernelParams = arguments};
    WANT(cudaSuccess, cudaGraphExecKernelNodeSetParams(executable, node, &parameters));
    (void)put_add(s, bodies[0], 1, 1000);
    launch(executable);
    EXPECT_INT_EQ(20, value_of(s, 1));
    WANT(cudaSuccess, cudaGraphExecDestroy(executable));
}

static void refuse(cudaGraph_t graph, cudaGraphConditionalHandle handle,
                   enum cudaGraphConditionalNodeType type, unsigned size) {
    cudaGraphNode_t node = NULL;
    struct cudaGraphNodeParams parameters = conditional(handle, type, size);
    WANT(cudaErrorInvalidValue, cudaGraphAddNode(&node, graph, NULL, NULL, 0, &parameters));
}

SCENE_TEST(wrong_handles_and_sizes_are_refused) {
    cudaGraph_t other = NULL;
    cudaGraphConditionalHandle handle = new_handle(s->graph, 0, 0), unused;
    WANT(cudaErrorInvalidValue, cudaGraphConditionalHandleCreate(NULL, s->graph, 0, 0));
    WANT(cudaErrorInvalidValue, cudaGraphConditionalHandleCreate(&unused, NULL, 0, 0));
    WANT(cudaErrorInvalidValue, cudaGraphConditionalHandleCreate(&unused, s->graph, 0, 2));
    WANT(cudaSuccess, cudaGraphCreate(&other, 0));
    refuse(s->graph, 0, cudaGraphCondTypeIf, 1);
    refuse(s->graph, handle + 1000, cudaGraphCondTypeIf, 1);
    refuse(other, handle, cudaGraphCondTypeIf, 1);
    refuse(s->graph, handle, cudaGraphCondTypeIf, 3);
    refuse(s->graph, handle, cudaGraphCondTypeWhile, 2);
    refuse(s->graph, handle, cudaGraphCondTypeSwitch, 0);
    refuse(s->graph, handle, cudaGraphCondTypeSwitch, UINT32_MAX);
    refuse(s->graph, handle, (enum cudaGraphConditionalNodeType)7, 1);
    (void)put_condition(s->graph, NULL, handle, cudaGraphCondTypeIf, 1);
    refuse(s->graph, handle, cudaGraphCondTypeIf, 1);
    WANT(cudaSuccess, cudaGraphDestroy(other));
}

static void on_host(void *data) {
    (void)data;
}

SCENE_TEST(graphs_that_cuda_does_not_copy_are_refused) {
    cudaGraph_t parent = NULL, copy = NULL;
    cudaGraphNode_t node = NULL;
    cudaGraphExec_t executable = NULL;
    const struct cudaHostNodeParams host = {.fn = on_host};
    cudaGraphConditionalHandle handle = new_handle(s->graph, 0, 0);
    cudaGraph_t *bodies = put_condition(s->graph, NULL, handle, cudaGraphCondTypeIf, 1);
    WANT(cudaErrorNotSupported, cudaGraphClone(&copy, s->graph));
    WANT(cudaSuccess, cudaGraphCreate(&parent, 0));
    WANT(cudaErrorNotSupported, cudaGraphAddChildGraphNode(&node, parent, NULL, 0, s->graph));
    WANT(cudaSuccess, cudaGraphAddHostNode(&node, bodies[0], NULL, 0, &host));
    WANT(cudaErrorNotSupported, cudaGraphInstantiate(&executable, s->graph, 0));
    WANT(cudaSuccess, cudaGraphDestroy(parent));
}

/* Both are found, where a GPU would go on for ever or do anything. */
C_TEST(condition, loops_that_never_end_and_wrong_handles_are_found) {
    for (int wrong = 0; wrong < 2; wrong++) {
        struct scene scene = {NULL, NULL}, *s = &scene;
        cudaGraphExec_t executable = NULL;
        ASSERT_TRUE(create(s));
        cudaGraphConditionalHandle handle = new_handle(s->graph, 1, cudaGraphCondAssignDefault);
        cudaGraph_t *bodies = put_condition(s->graph, NULL, handle, cudaGraphCondTypeWhile, 1);
        (void)(wrong ? put_setter(s, bodies[0], NULL, kernel_count_down(), handle + 1000, 0)
                     : put_add(s, bodies[0], 1, 1));
        WANT(cudaSuccess, cudaGraphInstantiate(&executable, s->graph, 0));
        WANT(cudaSuccess, cudaGraphLaunch(executable, NULL));
        EXPECT_STR_EQ(wrong ? "cudaErrorIllegalAddress" : "cudaErrorLaunchTimeout",
                      cudaGetErrorName(cudaDeviceSynchronize()));
        (void)cudaDeviceReset();
        (void)cudaGetLastError();
    }
}
