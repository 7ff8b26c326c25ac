/*
 * A submission to lab 04 that is right, and uses of C++ what harmless programs use: containers,
 * smart pointers, threads, exceptions, text. Its parity test must pass.
 */
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "labs/04_sgemm/sgemm.h"

enum { THREADS = 256 };

static __global__ void element_kernel(struct sgemm_problem p) {
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= p.M * p.N) {
        return;
    }
    size_t n = i % p.N, m = i / p.N;
    float sum = 0.0f;
    for (size_t k = 0; k < p.K; k++) {
        sum += p.A[m * p.K + k] * (p.form == SGEMM_B_PLAIN ? p.B[k * p.N + n] : p.B[n * p.K + k]);
    }
    p.C[i] = p.beta != 0.0f ? p.alpha * sum + p.beta * p.C[i] : p.alpha * sum;
}

/* A plan for each shape, remembered; no plan is better than another here. */
static std::shared_ptr<std::vector<size_t>> plan_of(const struct sgemm_problem *problem) {
    static std::mutex lock;
    static std::unordered_map<std::string, std::shared_ptr<std::vector<size_t>>> plans;
    static std::map<size_t, std::function<size_t(size_t)>> rules;
    std::lock_guard<std::mutex> guard(lock);
    std::string name = std::to_string(problem->M) + "x" + std::to_string(problem->N);
    auto &plan = plans[name];
    if (!plan) {
        plan = std::make_shared<std::vector<size_t>>(4, problem->K);
        rules[plans.size()] = [](size_t x) { return x / 2; };
        std::sort(plan->begin(), plan->end());
        std::thread([&] { plan->front() = rules.begin()->second(2); }).join();
    }
    if (plan->empty()) {
        throw std::runtime_error("no plan");
    }
    return plan;
}

const struct sgemm_step *sgemm_ladder(size_t *count) {
    static const struct sgemm_step step = {"honest", sgemm};
    *count = 1;
    return &step;
}

enum status sgemm(const struct sgemm_problem *problem, void *workspace, device_stream stream,
                  struct error *error) {
    (void)workspace;
    size_t blocks = (problem->M * problem->N + THREADS - 1) / THREADS;
    try {
        if (blocks == 0 || plan_of(problem)->front() != 1) {
            return STATUS_OK;
        }
    } catch (const std::exception &e) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "%s", e.what());
    }
    element_kernel<<<(unsigned)blocks, THREADS, 0, stream>>>(*problem);
    return device_launched("element_kernel", error);
}
