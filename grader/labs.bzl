"""What the two programs of each lab's graded tests stand on; see grade_lab()."""

# For each lab:
#   deps: the tests in cases/
#   worker_deps: cases/LAB_worker.c
#   engine_deps: the lab's engine.c, where a worker links it on other functions than the subject's
#   baseline: the starter's way of doing it
#   baseline_engine: False where that needs no engine.c: it brings an engine, or has none
#   device: False for a lab on the CPU
LABS = {
    "01_cpu_matmul": dict(
        baseline = "//grader:cpu_matmul_baseline",
        device = False,
        engine_deps = ["//common/model:engine"],
        worker_deps = [
            "//common/bench",
            "//grader/isolation:models",
            "//grader/isolation:worker_llama2",
            "//labs/01_cpu_matmul:contract",
        ],
        deps = [
            "//common/bench",
            "//common/model:llama2_random",
            "//grader:remote_models",
        ],
    ),
    "02_gpu_matmul": dict(
        baseline = "//grader:gpu_matmul_baseline",
        baseline_engine = False,
        engine_deps = [
            "//common/device",
            "//common/model:engine",
            "//labs/01_cpu_matmul:contract",
            "//solutions/01_cpu_matmul:engine",
        ],
        worker_deps = [
            "//grader/isolation:models",
            "//grader/isolation:worker_llama2",
            "//labs/02_gpu_matmul:contract",
        ],
        deps = [
            "//common/bench:device_bench",
            "//grader:grading_gpu",
            "//grader:remote_models",
            "//labs/02_gpu_matmul:contract",
        ],
    ),
    "03_resident_weights": dict(
        baseline = "//solutions/02_gpu_matmul:engine",
        baseline_engine = False,
        engine_deps = [
            "//common/device",
            "//common/model:engine",
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
            "//common/model:engine",
            "//common/model:llama2",
            "//common/model:llama2_random",
            "//grader:grading_gpu",
            "//grader:remote_bert",
            "//grader:remote_models",
        ],
    ),
    "04_sgemm": dict(
        baseline = "//grader:sgemm_baseline",
        engine_deps = [
            "//common/model:engine",
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
            "//grader:grading_gpu",
            "//grader:remote_bert",
            "//grader:remote_models",
            "//labs/04_sgemm:contract",
        ],
    ),
    "05_layernorm_softmax": dict(
        baseline = "//grader:layernorm_softmax_baseline",
        engine_deps = [
            "//common/device",
            "//common/model:engine",
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
            "//grader:grading_gpu",
            "//grader:remote_bert",
            "//grader:remote_models",
            "//labs/05_layernorm_softmax:contract",
            "//labs/05_layernorm_softmax:oracle",
        ],
    ),
    "06_fused_epilogues": dict(
        baseline = "//grader:fused_epilogues_baseline",
        engine_deps = [
            "//common/device",
            "//common/model:engine",
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
            "//common/bench:device_bench",
            "//grader:fused_epilogues_case",
            "//grader:grading_gpu",
            "//grader:remote_bert",
            "//labs/06_fused_epilogues:contract",
            "//labs/06_fused_epilogues:oracle",
        ],
    ),
    "07_attention": dict(
        baseline = "//grader:attention_baseline",
        engine_deps = [
            "//common/device",
            "//common/model:engine",
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
            "//grader:attention_case",
            "//grader:grading_gpu",
            "//grader:remote_bert",
            "//grader:remote_models",
            "//labs/07_attention:contract",
        ],
    ),
    "08_bert_classifier": dict(
        baseline = "//grader:encoder_baseline",
        engine_deps = [
            "//common/device",
            "//common/model:bert_encoder",
            "//common/model:engine",
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
            "//common/model:bert",
            "//grader:encoder_case",
            "//grader:encoder_remote",
            "//grader:grading_gpu",
            "//grader:remote_bert",
            "//grader:remote_models",
        ],
    ),
    "09_kv_cache": dict(
        baseline = "//grader:kv_cache_baseline",
        engine_deps = [
            "//common/device",
            "//common/model:engine",
            "//common/model:llama2_device",
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
            "//grader:kv_cache_graph",
            "//labs/09_kv_cache:contract",
        ],
        deps = [
            "//common/device",
            "//common/model:llama2",
            "//common/model:llama2_random",
            "//grader/isolation:decoding",
            "//grader:grading_gpu",
            "//grader:kv_cache_case",
            "//grader:kv_cache_remote",
            "//grader:remote_models",
            "//grader:rounded_llama2",
            "//labs/09_kv_cache:contract",
        ],
    ),
    "10_llama2_decoder": dict(
        baseline = "//grader:decoder_baseline",
        engine_deps = [
            "//common/device",
            "//common/model:engine",
            "//common/model:llama2_device",
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
            "//grader:decoder_steps",
            "//labs/10_llama2_decoder:contract",
        ],
        deps = [
            "//common/device",
            "//grader/isolation:decoding",
            "//grader:decoder_case",
            "//grader:decoder_remote",
            "//grader:grading_gpu",
            "//grader:remote_models",
            "//labs/10_llama2_decoder:contract",
        ],
    ),
    "11_training": dict(
        baseline = "//grader:training_baseline",
        engine_deps = [
            "//common/train:train_engine",
            "//labs/11_training:given",
        ],
        worker_deps = [
            "//common/train:train_model",
            "//grader:training_steps",
            "//labs/11_training:contract",
        ],
        deps = [
            "//common/device",
            "//common/train:train_model",
            "//grader:grading_gpu",
            "//grader:training_case",
            "//grader:training_remote",
            "//labs/11_training:contract",
        ],
    ),
}
