/*
 * Two streams that wait for each other.
 *
 * Work on one stream runs in order; work on two streams has no order, unless an event makes one.
 * The two halves here may run at the same time, after everything that is on stream a already. The
 * caller waits for stream a alone:
 *
 *   stream a   ... -- before -- first half ---------- waits for after -- ...
 *                        \                                  /
 *   stream b          waits for before -- second half -- after
 *
 *   cudaEventRecord(event, stream)           marks a place in that stream
 *   cudaStreamWaitEvent(stream, event, 0)    that stream waits there for the mark; the host does
 * not
 */
#include "labs/00_warmups/warmups.h"

static __global__ void add_index(float *x, int begin, int end) {
    int i = begin + blockIdx.x * blockDim.x + threadIdx.x;
    if (i < end) {
        x[i] += i;
    }
}

void w18_streams(float *d_x, int n, cudaStream_t a, cudaStream_t b) {
    cudaEvent_t before, after;
    int half = n / 2, blocks = (half + 127) / 128;
    cudaEventCreateWithFlags(&before, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&after, cudaEventDisableTiming);
    add_index<<<blocks, 128, 0, a>>>(d_x, 0, half);
    // TODO: the second half, from half to n, on b; and the two events, as drawn
    (void)b;
    cudaEventDestroy(before);
    cudaEventDestroy(after);
}
