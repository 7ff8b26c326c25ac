/**
 * @file approximate.h
 * @brief ex2, lg2, sin, cos, tanh and rsqrt of rows: the same bits on every machine.
 *
 * Each is a fixed polynomial in double precision, rounded to fp32 once: IEEE
 * operations in a fixed order, no libm. A GPU's special function unit is coarser
 * (PTX allows 2 ulp for ex2, 2^-11 relative for tanh, 2^-20.5 absolute for sin
 * and cos within [-2pi, 2pi]), so results differ from hardware within those bounds.
 *
 * Largest errors against libm's double functions, rounded to fp32, by
 * approximate_test (rsqrt has the same formula there): sin 1 ulp, once in 960,000;
 * the others none. For sin and cos |x| <= 100 pi. An H200 itself was seen 125 ulp
 * away from tanh (fp32), 1 ulp from rsqrt, ex2 and tanh of fp16 and bf16.
 * Beyond that sin and cos lose what the argument's own spacing loses: the number
 * of turns x / 2pi is taken in double precision, so that results stay in [-1, 1].
 *
 * All functions allow @p result == @p x. Special values follow PTX; NaN is 0x7fffffff.
 */
#ifndef WARPBOOK_COMMON_SIMT_ALU_APPROXIMATE_H_
#define WARPBOOK_COMMON_SIMT_ALU_APPROXIMATE_H_

#include "common/simt/core/exec.h"

typedef void approximate_row(const float x[SIMT_LANES], float result[SIMT_LANES]);

approximate_row approximate_ex2;   /**< 2^x */
approximate_row approximate_lg2;   /**< log2 x; 0: -inf; below 0: NaN */
approximate_row approximate_sin;   /**< of radians; infinite: NaN */
approximate_row approximate_cos;   /**< of radians; infinite: NaN */
approximate_row approximate_tanh;  /**< exact signs of zero; +-inf: +-1 */
approximate_row approximate_rsqrt; /**< 1 / sqrt(x); +-0: +-inf; below 0: NaN */

#endif
