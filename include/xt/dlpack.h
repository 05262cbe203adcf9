/* dlpack.h: inputs and results that are DLPack tensors: what NumPy, PyTorch, JAX, CuPy and TVM hand out.
 *
 *     xt_node x = xt_input_dl(g, "x", &in->dl_tensor);
 *     xt_output_dl(g, xt_permute(g, x, 2, (int[]){1, 0}), &out->dl_tensor);
 *     xt_compile(ctx, g, NULL, &k);
 *     xt_run(k, xt_dl_pointer(&out->dl_tensor), (const void *[]){xt_dl_pointer(&in->dl_tensor)}, stream);
 *
 * A DLTensor is read and not kept. Who owns it, and what its device's streams wait for, is its producer's
 * matter: xt never calls a deleter. Tensors on a GPU (kDLCUDA, kDLCUDAManaged) take a kernel that was
 * compiled for XT_CUDA, all others one for the CPU.
 *
 * The declarations are those of DLPack 1.3. A program that includes DLPack's own header, before or after this
 * one, gets the same types: both have the same guard. */
#ifndef XT_DLPACK_H
#define XT_DLPACK_H

#include <xt/xt.h>

#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_

#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 3

#define DLPACK_FLAG_BITMASK_READ_ONLY              (1UL << 0UL)
#define DLPACK_FLAG_BITMASK_IS_COPIED              (1UL << 1UL)
#define DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED (1UL << 2UL)

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    uint32_t major, minor;
} DLPackVersion;

#ifdef __cplusplus
typedef enum : int32_t {
#else
typedef enum {
#endif
    kDLCPU = 1,
    kDLCUDA = 2,
    kDLCUDAHost = 3,
    kDLOpenCL = 4,
    kDLVulkan = 7,
    kDLMetal = 8,
    kDLVPI = 9,
    kDLROCM = 10,
    kDLROCMHost = 11,
    kDLExtDev = 12,
    kDLCUDAManaged = 13,
    kDLOneAPI = 14,
    kDLWebGPU = 15,
    kDLHexagon = 16,
    kDLMAIA = 17,
    kDLTrn = 18
} DLDeviceType;

typedef struct {
    DLDeviceType device_type;
    int32_t device_id;
} DLDevice;

typedef enum {
    kDLInt = 0,
    kDLUInt = 1,
    kDLFloat = 2,
    kDLOpaqueHandle = 3,
    kDLBfloat = 4,
    kDLComplex = 5,
    kDLBool = 6,
    kDLFloat8_e3m4 = 7,
    kDLFloat8_e4m3 = 8,
    kDLFloat8_e4m3b11fnuz = 9,
    kDLFloat8_e4m3fn = 10,
    kDLFloat8_e4m3fnuz = 11,
    kDLFloat8_e5m2 = 12,
    kDLFloat8_e5m2fnuz = 13,
    kDLFloat8_e8m0fnu = 14,
    kDLFloat6_e2m3fn = 15,
    kDLFloat6_e3m2fn = 16,
    kDLFloat4_e2m1fn = 17
} DLDataTypeCode;

typedef struct {
    uint8_t code; /* DLDataTypeCode */
    uint8_t bits;
    uint16_t lanes;
} DLDataType;

typedef struct {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL, before 1.2: dense, row-major */
    uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor { /* before 1.0 */
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

typedef struct DLManagedTensorVersioned {
    DLPackVersion version; /* of another major: call the deleter, read nothing else */
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    DLTensor dl_tensor;
} DLManagedTensorVersioned;

/* type(x).__dlpack_c_exchange_api__, since 1.3: a capsule "dlpack_exchange_api" that points to this table. */
typedef int (*DLPackManagedTensorAllocator)(DLTensor *prototype, DLManagedTensorVersioned **out,
                                            void *error_ctx,
                                            void (*SetError)(void *error_ctx, const char *kind,
                                                             const char *message));
typedef int (*DLPackManagedTensorFromPyObjectNoSync)(void *py_object, DLManagedTensorVersioned **out);
typedef int (*DLPackManagedTensorToPyObjectNoSync)(DLManagedTensorVersioned *tensor, void **out_py_object);
typedef int (*DLPackDLTensorFromPyObjectNoSync)(void *py_object, DLTensor *out);
typedef int (*DLPackCurrentWorkStream)(DLDeviceType device_type, int32_t device_id,
                                       void **out_current_stream);

typedef struct DLPackExchangeAPIHeader {
    DLPackVersion version;
    struct DLPackExchangeAPIHeader *prev_api; /* an older table, or NULL */
} DLPackExchangeAPIHeader;

typedef struct DLPackExchangeAPI {
    DLPackExchangeAPIHeader header;
    DLPackManagedTensorAllocator managed_tensor_allocator;
    DLPackManagedTensorFromPyObjectNoSync managed_tensor_from_py_object_no_sync;
    DLPackManagedTensorToPyObjectNoSync managed_tensor_to_py_object_no_sync;
    DLPackDLTensorFromPyObjectNoSync dltensor_from_py_object_no_sync; /* may be NULL */
    DLPackCurrentWorkStream current_work_stream;
} DLPackExchangeAPI;

#ifdef __cplusplus
}
#endif
#endif /* DLPACK_DLPACK_H_ */

#ifdef __cplusplus
extern "C" {
#endif

/* The element type. XT_EDTYPE: xt has none such: types of less than a byte, the rarer ones of 8 bits, vectors
 * (lanes other than 1). A copy needs no more than the width: XT_U8 moves those of 8 bits as well. */
XT_API xt_status xt_dl_dtype(DLDataType t, xt_dtype *out);

/* Where element (0,..,0) lies: what xt_run gets for a tensor of the two calls below. t NULL: NULL. */
XT_API void *xt_dl_pointer(const DLTensor *t);

/* xt_input and xt_output with the tensor's type, shape, strides and XT_ORIGIN. The shape and the type of the
 * result must be the tensor's: XT_ESHAPE, XT_EDTYPE. */
XT_API xt_node xt_input_dl(struct xt_graph *g, const char *name, const DLTensor *t);
XT_API xt_status xt_output_dl(struct xt_graph *g, xt_node x, const DLTensor *t);

/* For xt_parse: the tensor's type and shape, then, for input `input` of the graph, its layout. The type or
 * the shape of the input must be the tensor's. */
XT_API xt_status xt_dl_shape(const DLTensor *t, struct xt_shape *out);
XT_API xt_status xt_input_layout_dl(struct xt_graph *g, int input, const DLTensor *t);

#ifdef __cplusplus
}
#endif
#endif
