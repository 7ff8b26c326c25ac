"""Tests of the grader: submissions whose verdict is known."""

load("@local_config_cuda//:config.bzl", "REQUIRES_NVCC")
load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library")

def expect_verdict(name, test, want, text, size = "medium", tags = [], variables = [], data = [], **kwargs):
    """Runs a graded test program; its verdict must be `want` ("pass", "fail") and match `text`."""
    native.sh_test(
        name = name,
        size = size,
        srcs = ["expect_verdict.sh"],
        args = [want, "'%s'" % text, "$(location %s)" % test] + variables,
        data = [test] + data,
        tags = tags,
        **kwargs
    )

def wrong_cpu_matmul(name, wrong, text, want = "fail"):
    """The parity test of lab 01 on one wrong submission of wrong_matmul.c."""
    cc_library(
        name = name + "_matmul",
        testonly = True,
        srcs = [
            "wrong_matmul.c",
            "//labs/01_cpu_matmul:engine.c",
        ],
        local_defines = ["WRONG=" + wrong],
        deps = [
            "//common/model:engine",
            "//labs/01_cpu_matmul:contract",
        ],
    )
    cc_binary(
        name = name + "_parity",
        testonly = True,
        srcs = ["//grader:cases/01_cpu_matmul_parity.c"],
        linkstatic = True,
        deps = [
            ":" + name + "_matmul",
            "//common/model:llama2",
            "//common/model:llama2_random",
            "//common/nn",
            "//common/testing",
            "//common/testing:compare",
            "//grader:grading",
        ],
    )
    expect_verdict(
        name = name,
        test = ":" + name + "_parity",
        want = want,
        text = text,
    )

def slow_cpu_matmul(name, subject):
    """The speedup test of lab 01 on a submission that is right but slow.

    The thresholds are halved: it must miss even those, and the message must
    name what was measured and what is required.
    """
    cc_binary(
        name = name + "_speedup",
        testonly = True,
        srcs = ["//grader:cases/01_cpu_matmul_speedup.c"],
        linkstatic = True,
        local_defines = ["GRADER_SUBJECT=\\\"selftest\\\"", "GRADER_MARGIN=0.5"],
        deps = [
            subject,
            "//common/model:llama2",
            "//common/model:llama2_random",
            "//common/nn",
            "//common/testing",
            "//common/testing:compare",
            "//grader:grading",
        ],
    )
    expect_verdict(
        name = name,
        test = ":" + name + "_speedup",
        want = "fail",
        text = "kernel is too slow: measured .*x, required 4.00x",
        tags = ["exclusive"],
    )

_SGEMM_DEPS = [
    "//common/device",
    "//common/formats:bert_random",
    "//common/model:bert",
    "//common/model:llama2",
    "//common/model:llama2_random",
    "//common/nn",
    "//common/testing",
    "//common/testing:compare",
    "//grader:grading",
    "//grader:grading_gpu",
    "//grader:sgemm_baseline",
    "//labs/03_resident_weights:contract",
    "//labs/04_sgemm:contract",
    "//solutions/03_resident_weights:engine",
]

def sgemm_case(name, subject, part, margin):
    """One graded test of lab 04 as a program, on a library that brings sgemm()."""
    cc_binary(
        name = name,
        testonly = True,
        srcs = [
            "//grader:cases/04_sgemm_%s.c" % part,
            "//labs/04_sgemm:engine.c",
        ],
        linkstatic = True,
        local_defines = ["GRADER_SUBJECT=\\\"selftest\\\"", "GRADER_MARGIN=%s" % margin],
        target_compatible_with = REQUIRES_NVCC,
        deps = [subject] + _SGEMM_DEPS,
    )

def wrong_sgemm(name, text, want = "fail", variables = [], data = []):
    """The parity test of lab 04, on simt, on one wrong submission of wrong_sgemm.cu, without its prefix."""
    expect_verdict(
        name = name,
        test = ":sgemm_parity",
        want = want,
        text = text,
        variables = ["WRONG_SGEMM=" + name[len("sgemm_"):]] + variables,
        data = data,
        # A GPU does not notice what simt stops at.
        target_compatible_with = REQUIRES_NVCC + select({
            "//common/bazel:simt": [],
            "//conditions:default": ["@platforms//:incompatible"],
        }),
    )

# What the cases of each GPU lab stand on beside the subject; as in //grader:BUILD.
_GPU_CASES = {
    "02_gpu_matmul": [
        "//common/bench:device_bench",
        "//grader:gpu_matmul_baseline",
        "//labs/01_cpu_matmul:contract",
        "//labs/02_gpu_matmul:contract",
        "//solutions/01_cpu_matmul:engine",
    ],
    "03_resident_weights": [
        "//common/formats:bert_random",
        "//common/model:bert",
        "//labs/02_gpu_matmul:contract",
        "//labs/03_resident_weights:contract",
        "//labs/03_resident_weights:operators",
        "//solutions/02_gpu_matmul:engine",
    ],
    "05_layernorm_softmax": [
        "//common/formats:bert_random",
        "//common/model:bert",
        "//grader:layernorm_softmax_baseline",
        "//labs/03_resident_weights:contract",
        "//labs/04_sgemm:contract",
        "//labs/05_layernorm_softmax:contract",
        "//labs/05_layernorm_softmax:oracle",
        "//solutions/04_sgemm:engine",
    ],
    "06_fused_epilogues": [
        "//common/bench:device_bench",
        "//common/bench:device_launches",
        "//common/formats:bert_random",
        "//common/model:bert",
        "//grader:fused_epilogues_case",
        "//labs/03_resident_weights:contract",
        "//labs/05_layernorm_softmax:contract",
        "//labs/06_fused_epilogues:contract",
        "//labs/06_fused_epilogues:oracle",
        "//solutions/05_layernorm_softmax:engine",
    ],
    "07_attention": [
        "//common/formats:bert_random",
        "//common/model:bert",
        "//grader:attention_baseline",
        "//grader:attention_case",
        "//labs/03_resident_weights:contract",
        "//labs/06_fused_epilogues:contract",
        "//labs/07_attention:contract",
        "//solutions/06_fused_epilogues:engine",
    ],
    "08_bert_classifier": [
        "//common/bench:device_launches",
        "//common/formats:bert_random",
        "//common/model:bert",
        "//common/model:bert_encoder",
        "//grader:encoder_baseline",
        "//grader:encoder_case",
        "//labs/03_resident_weights:contract",
        "//labs/07_attention:contract",
        "//labs/08_bert_classifier:contract",
        "//solutions/07_attention:engine",
    ],
    "10_llama2_decoder": [
        "//common/base",
        "//common/bench:device_launches",
        "//common/model:llama2_device",
        "//grader:decoder_baseline",
        "//grader:decoder_case",
        "//labs/03_resident_weights:contract",
        "//labs/09_kv_cache:contract",
        "//labs/10_llama2_decoder:contract",
        "//labs/10_llama2_decoder:decoder_model",
        "//solutions/09_kv_cache:engine",
        "@rules_cuda//cuda:runtime",
    ],
    "09_kv_cache": [
        "//common/formats:llama2_tensors",
        "//common/model:llama2_device",
        "//grader:kv_cache_baseline",
        "//grader:kv_cache_case",
        "//labs/03_resident_weights:contract",
        "//labs/03_resident_weights:operators",
        "//labs/07_attention:contract",
        "//labs/09_kv_cache:contract",
        "//labs/09_kv_cache:embedding_row",
        "//solutions/07_attention:engine",
    ],
}

def gpu_case(name, lab, part, margin, subject):
    """One graded test of lab 02, 03 or 05 as a program.

    Args:
      name: of the program.
      lab: NN_topic.
      part: "parity" or "speedup".
      margin: factor on thresholds.
      subject: library that brings the learner's functions.
    """
    cc_binary(
        name = name,
        testonly = True,
        srcs = [
            "//grader:cases/%s_%s.c" % (lab, part),
            "//labs/%s:engine.c" % lab,
        ],
        linkstatic = True,
        local_defines = ["GRADER_SUBJECT=\\\"selftest\\\"", "GRADER_MARGIN=%s" % margin],
        target_compatible_with = REQUIRES_NVCC,
        deps = [subject] + _GPU_CASES[lab] + [
            "//common/device",
            "//common/model:engine",
            "//common/model:llama2",
            "//common/model:llama2_random",
            "//common/nn",
            "//common/testing",
            "//common/testing:compare",
            "//grader:grading",
            "//grader:grading_gpu",
        ],
    )

# A GPU does not notice what simt stops at.
_ON_SIMT = select({
    "//common/bazel:simt": [],
    "//conditions:default": ["@platforms//:incompatible"],
})

def wrong_gpu(program, variable, verdicts):
    """A parity test on simt for each wrong submission: {name: text that must come}; "right" must pass."""
    for mistake, text in verdicts.items():
        expect_verdict(
            name = "%s_%s" % (program, mistake),
            test = ":" + program,
            want = "pass" if mistake == "right" else "fail",
            text = text,
            variables = ["%s=%s" % (variable, mistake)],
            target_compatible_with = REQUIRES_NVCC + _ON_SIMT,
        )
