/**
 * @file thresholds.h
 * @brief The one table of what a lab must reach.
 */
#ifndef WARPBOOK_GRADER_THRESHOLDS_H_
#define WARPBOOK_GRADER_THRESHOLDS_H_

#ifdef __cplusplus
extern "C" {
#endif

/** What one measurement must reach. */
struct threshold {
    const char *lab;     /**< "01_cpu_matmul" */
    const char *measure; /**< "kernel" or "end_to_end" */
    double required;     /**< least speedup over the baseline measured in the same run */
    double modelled;     /**< the same in simt's modelled time; 0: as required */
    const char *what;    /**< what is measured against what */
    const char *why;     /**< where the number comes from */
};

/** @return the threshold, or NULL when the table has none. */
const struct threshold *threshold_find(const char *lab, const char *measure);

#ifdef __cplusplus
}
#endif

#endif
