"""What the two programs of each lab's graded tests stand on; see grade_lab()."""

# For each lab:
#   deps: LAB/parity.c and LAB/speedup.c
#   worker_deps: LAB/worker.c
#   engine_deps: the lab's engine.c, where a worker links it on other functions than the subject's
#   baseline: the starter's way of doing it
#   baseline_engine: False where that needs no engine.c: it brings an engine, or has none
#   device: False for a lab on the CPU
LABS = {
    "01_cpu_matmul": dict(
        baseline = "//grader/01_cpu_matmul:cpu_matmul_baseline",
        device = False,
        engine_deps = ["//common/models:engine"],
        worker_deps = [
            "//common/bench",
            "//grader/isolation:models",
            "//grader/isolation:worker_llama2",
            "//labs/01_cpu_matmul:contract",
        ],
        deps = [
            "//common/bench",
            "//common/models:llama2_random",
            "//grader/harness:remote_models",
        ],
    ),
    "02_gpu_matmul": dict(
        baseline = "//grader/02_gpu_matmul:gpu_matmul_baseline",
        baseline_engine = False,
        engine_deps = [
            "//common/device",
            "//common/models:engine",
            "//labs/01_cpu_matmul:contract",
            "//solutions/01_cpu_matmul:engine",
        ],
        worker_deps = [
            "//grader/isolation:models",
            "//grader/isolation:worker_llama2",
            "//labs/02_gpu_matmul:contract",
        ],
        deps = [
            "//common/bench/device:device_bench",
            "//grader/harness:grading_gpu",
            "//grader/harness:remote_models",
            "//labs/02_gpu_matmul:contract",
        ],
    ),
    "03_resident_weights": dict(
        baseline = "//solutions/02_gpu_matmul:engine",
        baseline_engine = False,
        engine_deps = [
            "//common/device",
            "//common/models:engine",
            "//solutions/02_gpu_matmul:gpu_matmul",
        ],
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
        baseline = "//grader/04_sgemm:sgemm_baseline",
        engine_deps = [
            "//common/models:engine",
            "//labs/03_resident_weights:contract",
            "//solutions/03_resident_weights:engine",
        ],
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
        ],
    ),
    "05_layernorm_softmax": dict(
        baseline = "//grader/05_layernorm_softmax:layernorm_softmax_baseline",
        engine_deps = [
            "//common/device",
            "//common/models:engine",
            "//labs/03_resident_weights:contract",
            "//labs/04_sgemm:contract",
            "//solutions/04_sgemm:engine",
        ],
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
            "//labs/05_layernorm_softmax:oracle",
        ],
    ),
    "06_fused_epilogues": dict(
        baseline = "//grader/06_fused_epilogues:fused_epilogues_baseline",
        engine_deps = [
            "//common/device",
            "//common/models:engine",
            "//labs/03_resident_weights:contract",
            "//labs/05_layernorm_softmax:contract",
            "//solutions/05_layernorm_softmax:engine",
        ],
        worker_deps = [
            "//grader/isolation:models",
            "//grader/isolation:worker_bert",
            "//labs/06_fused_epilogues:contract",
        ],
        deps = [
            "//common/bench",
            "//common/bench/device:device_bench",
            "//labs/06_fused_epilogues:problem",
            "//grader/harness:grading_gpu",
            "//grader/harness:remote_bert",
            "//labs/06_fused_epilogues:contract",
            "//labs/06_fused_epilogues:oracle",
        ],
    ),
    "07_attention": dict(
        baseline = "//grader/07_attention:attention_baseline",
        engine_deps = [
            "//common/device",
            "//common/models:engine",
            "//labs/03_resident_weights:contract",
            "//labs/06_fused_epilogues:contract",
            "//solutions/06_fused_epilogues:engine",
        ],
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
        baseline = "//grader/08_bert_classifier:encoder_baseline",
        engine_deps = [
            "//common/device",
            "//common/models:bert_encoder",
            "//common/models:engine",
            "//labs/03_resident_weights:contract",
            "//labs/07_attention:contract",
            "//solutions/07_attention:engine",
        ],
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
            "//grader/harness:remote_models",
        ],
    ),
    "09_kv_cache": dict(
        baseline = "//grader/09_kv_cache:kv_cache_baseline",
        engine_deps = [
            "//common/device",
            "//common/models:engine",
            "//common/models:llama2_device",
            "//labs/03_resident_weights:contract",
            "//labs/03_resident_weights:operators",
            "//labs/07_attention:contract",
            "//labs/09_kv_cache:embedding_row",
            "//solutions/07_attention:engine",
        ],
        worker_deps = [
            "//grader/isolation:models",
            "//grader/isolation:worker_decoding",
            "//grader/isolation:worker_llama2",
            "//labs/09_kv_cache:graph",
            "//labs/09_kv_cache:contract",
        ],
        deps = [
            "//common/device",
            "//common/models:llama2",
            "//common/models:llama2_random",
            "//grader/isolation:decoding",
            "//grader/harness:grading_gpu",
            "//labs/09_kv_cache:problem",
            "//grader/09_kv_cache:kv_cache_remote",
            "//grader/harness:remote_models",
            "//common/models:rounded_llama2",
            "//labs/09_kv_cache:contract",
        ],
    ),
    "10_llama2_decoder": dict(
        baseline = "//grader/10_llama2_decoder:decoder_baseline",
        engine_deps = [
            "//common/device",
            "//common/models:engine",
            "//common/models:llama2_device",
            "//labs/03_resident_weights:contract",
            "//labs/09_kv_cache:contract",
            "//labs/10_llama2_decoder:decoder_model",
            "//solutions/09_kv_cache:engine",
            "@rules_cuda//cuda:runtime",
        ],
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
        baseline = "//grader/11_training:training_baseline",
        engine_deps = [
            "//common/train:train_engine",
            "//labs/11_training:given",
        ],
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
}
