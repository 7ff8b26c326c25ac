"""What the two programs of each lab's graded tests stand on; see grade_lab()."""

# For each lab:
#   deps: LAB/parity.c and LAB/speedup.c
#   worker_deps: LAB/worker.c
#   baseline: the engine that the subject is compared with, where that is not the lab's own on the
#     functions of //labs/LAB:starter
#   baseline_times: True where the baseline's modelled times are recorded; elsewhere its results
#     are what the subject's are compared with, so it has to run
#   device: False for a lab on the CPU
LABS = {
    "01_cpu_matmul": dict(
        device = False,
        worker_deps = [
            "//common/bench",
            "//grader/isolation:models",
            "//grader/isolation:worker_llama2",
            "//labs/01_cpu_matmul:contract",
        ],
        deps = [
            "//common/bench",
            "//common/bench/models:decode_model",
            "//common/models:llama2_random",
            "//grader/01_cpu_matmul:cpu_limit",
            "//grader/01_cpu_matmul:matmul_remote",
            "//grader/harness:remote_models",
            "//grader/harness:rounds_speedup",
            "//labs/01_cpu_matmul:problem",
        ],
    ),
    "02_gpu_matmul": dict(
        worker_deps = [
            "//grader/isolation:models",
            "//grader/isolation:worker_llama2",
            "//labs/02_gpu_matmul:contract",
        ],
        deps = [
            "//common/bench/device:device_bench",
            "//grader/01_cpu_matmul:matmul_remote",
            "//grader/harness:grading_gpu",
            "//grader/harness:remote_models",
            "//labs/01_cpu_matmul:problem",
            "//labs/02_gpu_matmul:contract",
            "//labs/02_gpu_matmul:problem",
        ],
    ),
    "03_resident_weights": dict(
        # Not the starter, which copies the operands of every operator, but solved lab 02, which
        # copies those of products alone: the threshold counts from there.
        baseline = "//solutions/02_gpu_matmul:engine",
        worker_deps = [
            "//grader/isolation:models",
            "//grader/isolation:worker_bert",
            "//grader/isolation:worker_llama2",
            "//labs/02_gpu_matmul:contract",
            "//labs/03_resident_weights:contract",
            "//labs/03_resident_weights:operators",
        ],
        deps = [
            "//common/models:engine",
            "//common/models:llama2",
            "//common/models:llama2_random",
            "//grader/harness:grading_gpu",
            "//grader/harness:remote_bert",
            "//grader/harness:remote_models",
        ],
    ),
    "04_sgemm": dict(
        baseline_times = True,
        worker_deps = [
            "//grader/isolation:models",
            "//grader/isolation:worker_bert",
            "//grader/isolation:worker_llama2",
            "//labs/04_sgemm:contract",
        ],
        deps = [
            "//grader/harness:grading_gpu",
            "//grader/harness:remote_bert",
            "//grader/harness:remote_models",
            "//labs/04_sgemm:contract",
            "//labs/04_sgemm:problem",
        ],
    ),
    "05_layernorm_softmax": dict(
        baseline_times = True,
        worker_deps = [
            "//grader/isolation:models",
            "//grader/isolation:worker_bert",
            "//grader/isolation:worker_llama2",
            "//labs/05_layernorm_softmax:contract",
        ],
        deps = [
            "//grader/harness:grading_gpu",
            "//grader/harness:remote_bert",
            "//grader/harness:remote_models",
            "//labs/05_layernorm_softmax:contract",
            "//labs/05_layernorm_softmax:problem",
        ],
    ),
    "06_fused_epilogues": dict(
        worker_deps = [
            "//grader/isolation:models",
            "//grader/isolation:worker_bert",
            "//labs/04_sgemm:contract",
            "//labs/06_fused_epilogues:contract",
            "//solutions/04_sgemm:sgemm",
        ],
        deps = [
            "//common/bench",
            "//common/bench/device:device_bench",
            "//labs/06_fused_epilogues:problem",
            "//grader/harness:grading_gpu",
            "//grader/harness:remote_bert",
            "//labs/06_fused_epilogues:contract",
        ],
    ),
    "07_attention": dict(
        baseline_times = True,
        worker_deps = [
            "//grader/isolation:models",
            "//grader/isolation:worker_bert",
            "//grader/isolation:worker_llama2",
            "//labs/07_attention:contract",
        ],
        deps = [
            "//labs/07_attention:problem",
            "//grader/harness:grading_gpu",
            "//grader/harness:remote_bert",
            "//grader/harness:remote_models",
            "//labs/07_attention:contract",
        ],
    ),
    "08_bert_classifier": dict(
        worker_deps = [
            "//grader/isolation:models",
            "//grader/isolation:worker_bert",
            "//labs/08_bert_classifier:contract",
        ],
        deps = [
            "//common/device",
            "//common/models:bert",
            "//labs/08_bert_classifier:problem",
            "//grader/08_bert_classifier:encoder_remote",
            "//grader/harness:grading_gpu",
            "//grader/harness:remote_bert",
        ],
    ),
    "09_kv_cache": dict(
        worker_deps = [
            "//grader/isolation:models",
            "//grader/isolation:worker_decoding",
            "//grader/isolation:worker_llama2",
            "//grader/09_kv_cache:given",
            "//labs/09_kv_cache:graph",
            "//labs/09_kv_cache:contract",
        ],
        deps = [
            "//common/device",
            "//common/models:llama2",
            "//common/models:llama2_random",
            "//grader/isolation:decoding",
            "//grader/harness:grading_gpu",
            "//common/models:llama2_device",
            "//grader/harness:secret_weights",
            "//labs/09_kv_cache:problem",
            "//grader/09_kv_cache:kv_cache_remote",
            "//grader/harness:remote_models",
            "//common/models:rounded_llama2",
            "//labs/09_kv_cache:contract",
        ],
    ),
    "10_llama2_decoder": dict(
        worker_deps = [
            "//grader/isolation:models",
            "//grader/isolation:worker_decoding",
            "//grader/isolation:worker_llama2",
            "//labs/10_llama2_decoder:steps",
            "//labs/10_llama2_decoder:contract",
        ],
        deps = [
            "//common/device",
            "//grader/isolation:decoding",
            "//labs/10_llama2_decoder:problem",
            "//grader/10_llama2_decoder:decoder_remote",
            "//grader/harness:grading_gpu",
            "//grader/harness:remote_models",
            "//labs/10_llama2_decoder:contract",
        ],
    ),
    "11_training": dict(
        worker_deps = [
            "//common/train/models:train_model",
            "//grader/11_training:training_steps",
            "//labs/11_training:contract",
        ],
        deps = [
            "//common/device",
            "//common/train/models:train_model",
            "//grader/harness:grading_gpu",
            "//labs/11_training:problem",
            "//grader/11_training:training_remote",
            "//labs/11_training:contract",
        ],
    ),
    "12_tensor_cores": dict(
        baseline_times = True,
        worker_deps = [
            "//grader/isolation:models",
            "//grader/isolation:worker_bert",
            "//labs/12_tensor_cores:contract",
        ],
        deps = [
            "//grader/harness:grading_gpu",
            "//grader/harness:remote_bert",
            "//labs/12_tensor_cores:problem",
        ],
    ),
    "13_low_bit": dict(
        # The product that this lab wants to be faster than: bf16 weights, read as fast as they can be.
        baseline = "//solutions/09_kv_cache:kv_cache",
        baseline_times = True,
        worker_deps = [
            "//common/simt",
            "//labs/09_kv_cache:contract",
            "//labs/13_low_bit:contract",
        ],
        deps = [
            "//common/device",
            "//grader/harness:grading_gpu",
            "//labs/09_kv_cache:contract",
            "//labs/13_low_bit:problem",
        ],
    ),
    "14_endless_text": dict(
        worker_deps = [
            "//common/simt",
            "//labs/14_endless_text:contract",
            "//labs/14_endless_text:decoder",
            "//labs/14_endless_text:parts",
        ],
        deps = [
            "//common/base",
            "//common/device",
            "//grader/14_endless_text:endless_remote",
            "//grader/harness:grading_gpu",
            "//labs/14_endless_text:contract",
            "//labs/14_endless_text:problem",
        ],
    ),
    "15_many_gpus": dict(
        worker_deps = [
            "//common/ranks:group",
            "//common/simt",
            "//labs/10_llama2_decoder:contract",
            "//labs/15_many_gpus:contract",
            "//labs/15_many_gpus:decoder",
            "//labs/15_many_gpus:rig",
            "@rules_cuda//cuda:runtime",
        ],
        deps = [
            "//common/base",
            "//common/device",
            "//common/models:llama2",
            "//grader/15_many_gpus:many_remote",
            "//grader/harness:grading_gpu",
            "//labs/10_llama2_decoder:problem",
            "//labs/15_many_gpus:contract",
            "//labs/15_many_gpus:problem",
            "//labs/15_many_gpus:rig_contract",
        ],
    ),
}
