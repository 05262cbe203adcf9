/* test_abi.c: xt's own declarations of NVRTC and of the CUDA driver are those of the toolkit's headers.
 * Without the headers there is nothing to compare. Most of it is done by the compiler: an enum there is an
 * integer of the same width here, a handle a pointer. */
#include <stdio.h>

#include "cuda/driver_abi.h"
#include "cuda/nvrtc_abi.h"
#include "support/suite.h"

#if __has_include("/usr/local/cuda/include/cuda.h") && __has_include("/usr/local/cuda/include/nvrtc.h")
#define HAVE_HEADERS 1
#include "/usr/local/cuda/include/cuda.h"
#include "/usr/local/cuda/include/nvrtc.h"
#else
#define HAVE_HEADERS 0
#endif

#if HAVE_HEADERS

/* The same declarations once more, with the toolkit's own types in the places of xt's: then each must be
 * compatible with the toolkit's function. */
#define xti_nvrtc_result      nvrtcResult
#define xti_nvrtc_program     nvrtcProgram
#define xti_cu_result         CUresult
#define xti_cu_device         CUdevice
#define xti_cu_attribute      CUdevice_attribute
#define xti_cu_func_attribute CUfunction_attribute
#define xti_cu_capture_mode   CUstreamCaptureMode
#define xti_cu_context        CUcontext
#define xti_cu_module         CUmodule
#define xti_cu_function       CUfunction
#define xti_cu_stream         CUstream

#define X(field, symbol, required, params)                                                                   \
    _Static_assert(__builtin_types_compatible_p(nvrtcResult(*) params, __typeof__(&symbol)), #symbol);
XTI_NVRTC_FUNCTIONS(X)
#undef X
#define X(field, symbol, required, params)                                                                   \
    _Static_assert(__builtin_types_compatible_p(CUresult(*) params, __typeof__(&symbol)), #symbol);
XTI_CU_FUNCTIONS(X)
#undef X

#undef xti_nvrtc_result
#undef xti_nvrtc_program
#undef xti_cu_result
#undef xti_cu_device
#undef xti_cu_attribute
#undef xti_cu_func_attribute
#undef xti_cu_capture_mode
#undef xti_cu_context
#undef xti_cu_module
#undef xti_cu_function
#undef xti_cu_stream

/* A call passes the two in the same way. */
#define SAME(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), #ours)
SAME(xti_nvrtc_result, nvrtcResult);
SAME(xti_nvrtc_program, nvrtcProgram);
SAME(xti_cu_result, CUresult);
SAME(xti_cu_device, CUdevice);
SAME(xti_cu_attribute, CUdevice_attribute);
SAME(xti_cu_func_attribute, CUfunction_attribute);
SAME(xti_cu_capture_mode, CUstreamCaptureMode);
SAME(xti_cu_context, CUcontext);
SAME(xti_cu_module, CUmodule);
SAME(xti_cu_function, CUfunction);
SAME(xti_cu_stream, CUstream);

#endif

START_TEST(declarations_and_numbers_are_those_of_the_toolkit)
{
#if HAVE_HEADERS
    ck_assert_int_eq(XTI_NVRTC_SUCCESS, NVRTC_SUCCESS);
    ck_assert_int_eq(XTI_NVRTC_INVALID_OPTION, NVRTC_ERROR_INVALID_OPTION);
    ck_assert_int_eq(XTI_NVRTC_COMPILATION, NVRTC_ERROR_COMPILATION);
    ck_assert_int_eq(XTI_CU_SUCCESS, CUDA_SUCCESS);
    ck_assert_int_eq(XTI_CU_CAPTURE_FIRST, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    ck_assert_int_eq(XTI_CU_CAPTURE_LAST, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    ck_assert_int_eq(XTI_CU_CAPTURE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
    ck_assert_int_eq(XTI_CU_INVALID_IMAGE, CUDA_ERROR_INVALID_IMAGE);
    ck_assert_int_eq(XTI_CU_UNSUPPORTED_PTX_VERSION, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
    ck_assert_int_eq(XTI_CU_NO_BINARY_FOR_GPU, CUDA_ERROR_NO_BINARY_FOR_GPU);
    ck_assert_int_eq(XTI_CU_ATTR_MULTIPROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    ck_assert_int_eq(XTI_CU_ATTR_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    ck_assert_int_eq(XTI_CU_ATTR_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    ck_assert_int_eq(XTI_CU_FUNC_NUM_REGS, CU_FUNC_ATTRIBUTE_NUM_REGS);
#else
    printf("skipped: /usr/local/cuda/include has no cuda.h and nvrtc.h\n");
#endif
}
END_TEST

int main(void)
{
    Suite *s = suite_create("abi");
    TCase *c = tcase_create("abi");
    tcase_add_test(c, declarations_and_numbers_are_those_of_the_toolkit);
    suite_add_tcase(s, c);
    return run_suite(s);
}
