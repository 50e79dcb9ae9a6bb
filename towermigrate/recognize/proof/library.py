"""What may be called in a step: functions of TF1, NumPy and Python that have no effect and mean the same in TF2.

Everything else is a reason to stay out of loop style. A name stands here when it makes operations from its
arguments alone, keeps no state in Python, and gives the same in a traced function; tests/recognize run them.
"""

from __future__ import annotations

from towermigrate.recognize import optimizers
from towermigrate.recognize.initializers import INITIALIZERS as INITIALIZERS


def _all(prefix: str, names: str) -> frozenset[str]:
    return frozenset(prefix + name for name in names.split())


MATH = _all(
    "tf.",
    "abs accumulate_n add add_n argmax argmin argsort atan batch_to_space_nd boolean_mask broadcast_to cast ceil "
    "clip_by_average_norm clip_by_global_norm clip_by_norm clip_by_value complex concat constant convert_to_tensor cos "
    "cosh cumprod cumsum depth_to_space diag diag_part div div_no_nan divide eig erf exp expand_dims expm1 eye fill "
    "equal not_equal floor floor_div floordiv floormod gather gather_nd global_norm gradients greater greater_equal "
    "identity image.resize_bilinear image.resize_nearest_neighbor invert_permutation is_finite is_inf is_nan less "
    "less_equal lin_space linspace log log1p log_sigmoid logical_and logical_not logical_or logical_xor math.log "
    "math.exp math.sqrt math.square math.abs math.reduce_mean math.reduce_sum math.l2_normalize "
    "matmul matrix_band_part matrix_diag matrix_transpose maximum meshgrid minimum mod multiply negative norm "
    "one_hot ones ones_like pad pow range rank realdiv reciprocal reduce_all reduce_any reduce_join "
    "reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_sum reshape reverse reverse_v2 round rsqrt "
    "scalar_mul select sequence_mask shape sigmoid sign sin sinh size slice softmax space_to_batch_nd space_to_depth "
    "sparse_tensor_to_dense split sqrt square squared_difference squeeze stack stop_gradient strided_slice subtract "
    "sub mul neg pack unpack tan tanh tensordot tile to_double to_float to_int32 to_int64 trace transpose truediv "
    "unsorted_segment_sum unstack where zeros zeros_like batch_matmul segment_mean segment_sum cross einsum "
    "acos acosh asin asinh atan2 atanh batch_gather betainc bincount bitcast cholesky confusion_matrix conj "
    "count_nonzero digamma dynamic_partition dynamic_stitch ensure_shape erfc extract_image_patches fft "
    "histogram_fixed_width igamma igammac lbeta lgamma matrix_determinant matrix_diag_part matrix_inverse "
    "matrix_set_diag matrix_solve matrix_triangular_solve polygamma real repeat reverse_sequence rint roll "
    "saturate_cast scatter_nd segment_max segment_min segment_prod self_adjoint_eig sort space_to_batch "
    "spectral.rfft svd unsorted_segment_max unsorted_segment_mean unsorted_segment_min unsorted_segment_prod "
    "unsorted_segment_sqrt_n zeta angle arg_max arg_min batch_to_space cholesky_solve extract_volume_patches fft2d fft3d "
    "identity_n ifft ifft2d ifft3d imag matrix_square_root searchsorted self_adjoint_eigvals shape_n sparse_to_dense "
    "tensor_scatter_add tensor_scatter_sub tensor_scatter_update to_bfloat16 to_complex128 to_complex64 truncatediv "
    "truncatemod unique unique_with_counts unravel_index",
)
MODULES = (
    _all(
        "tf.math.",
        "acos acosh add argmax argmin asin asinh atan atan2 atanh bessel_i0 bessel_i1 ceil cos cosh count_nonzero "
        "cumprod cumsum digamma divide divide_no_nan equal erf erfc expm1 floor floordiv floormod greater "
        "greater_equal is_finite is_inf is_nan less less_equal lgamma log1p log_sigmoid log_softmax maximum minimum "
        "mod multiply negative not_equal pow reciprocal reduce_logsumexp reduce_max reduce_min reduce_prod reduce_std "
        "reduce_variance rint round rsqrt sigmoid sign sin sinh softmax softplus softsign squared_difference subtract "
        "tan tanh top_k truediv xdivy xlogy zero_fraction accumulate_n add_n angle bessel_i0e bessel_i1e betainc bincount "
        "confusion_matrix conj cumulative_logsumexp igamma igammac imag in_top_k invert_permutation lbeta logical_and "
        "logical_not logical_or logical_xor multiply_no_nan polygamma polyval real reciprocal_no_nan reduce_all reduce_any "
        "reduce_euclidean_norm scalar_mul segment_max segment_mean segment_min segment_prod segment_sum "
        "unsorted_segment_max unsorted_segment_mean unsorted_segment_min unsorted_segment_prod unsorted_segment_sqrt_n "
        "unsorted_segment_sum zeta",
    )
    | _all(
        "tf.linalg.",
        "band_part cholesky det diag diag_part einsum inv l2_normalize logdet matmul norm solve tensordot trace "
        "transpose adjoint cholesky_solve cross eigh eigvalsh eye global_norm lstsq matrix_transpose matvec normalize "
        "pinv qr set_diag slogdet svd tensor_diag tensor_diag_part triangular_solve",
    )
    | _all(
        "tf.signal.",
        "dct fft fft2d fftshift frame hamming_window hann_window idct ifft ifft2d ifftshift inverse_stft irfft "
        "linear_to_mel_weight_matrix mfccs_from_log_mel_spectrograms overlap_and_add rfft rfft2d stft",
    )
    | _all("tf.bitwise.", "bitwise_and bitwise_or bitwise_xor invert left_shift right_shift")
    | _all(
        "tf.image.",
        "adjust_brightness adjust_contrast adjust_gamma adjust_hue adjust_saturation central_crop "
        "convert_image_dtype crop_and_resize crop_to_bounding_box flip_left_right flip_up_down grayscale_to_rgb "
        "hsv_to_rgb image_gradients non_max_suppression pad_to_bounding_box per_image_standardization psnr "
        "resize_area resize_bicubic resize_image_with_crop_or_pad resize_images rgb_to_grayscale rgb_to_hsv rgb_to_yuv rot90 "
        "sobel_edges total_variation transpose_image yuv_to_rgb draw_bounding_boxes extract_image_patches resize "
        "resize_with_crop_or_pad rgb_to_yiq ssim ssim_multiscale transpose yiq_to_rgb",
    )
)
"""What stands in modules of their own."""
NN = _all(
    "tf.nn.",
    "atrous_conv2d avg_pool bias_add conv1d conv2d conv2d_transpose conv3d crelu depthwise_conv2d "
    "depthwise_conv2d_native dropout elu embedding_lookup in_top_k l2_loss l2_normalize leaky_relu "
    "local_response_normalization log_softmax lrn max_pool moments relu relu6 selu separable_conv2d sigmoid "
    "sigmoid_cross_entropy_with_logits softmax softmax_cross_entropy_with_logits "
    "softmax_cross_entropy_with_logits_v2 softplus softsign sparse_softmax_cross_entropy_with_logits swish tanh "
    "top_k weighted_cross_entropy_with_logits xw_plus_b zero_fraction "
    "avg_pool1d avg_pool2d avg_pool3d batch_normalization convolution dilation2d log_poisson_loss max_pool1d "
    "max_pool2d max_pool3d max_pool_with_argmax normalize_moments pool relu_layer space_to_depth weighted_moments "
    "conv1d_transpose conv3d_transpose depth_to_space erosion2d space_to_batch sufficient_statistics",
)
RANDOM = _all(
    "tf.",
    "random_normal random_uniform truncated_normal random_shuffle random_crop nn.dropout "
    "layers.dropout random.normal random.uniform random.truncated_normal multinomial",
) - {"tf.multinomial"}
"""Draws of random numbers: the same only where no seed fixes them."""

LAYERS = _all(
    "tf.layers.",
    "average_pooling1d average_pooling2d conv1d conv2d conv2d_transpose conv3d dense dropout flatten "
    "max_pooling1d max_pooling2d max_pooling3d separable_conv2d",
) | {"tf.contrib.layers.flatten"}
WITH_VARIABLES = _all(
    "tf.layers.", "conv1d conv2d conv2d_transpose conv3d dense separable_conv2d"
) | {"tf.get_variable"}
CELLS = frozenset(
    f"{module}.{cell}"
    for module in ("tf.nn.rnn_cell", "tf.contrib.rnn")
    for cell in (
        "BasicLSTMCell", "BasicRNNCell", "DropoutWrapper", "GRUCell", "LSTMCell", "MultiRNNCell", "ResidualWrapper",
    )
)  # fmt: skip
"""Recurrent cells, whose variables are made when they are called."""
RNNS = _all(
    "tf.nn.", "static_rnn dynamic_rnn static_bidirectional_rnn bidirectional_dynamic_rnn"
) | _all("tf.contrib.rnn.", "static_rnn static_bidirectional_rnn")
"""What calls cells for each step of a sequence, in a variable scope of its own name."""
LOSSES = _all(
    "tf.losses.",
    "absolute_difference cosine_distance hinge_loss huber_loss log_loss mean_pairwise_squared_error mean_squared_error "
    "sigmoid_cross_entropy "
    "softmax_cross_entropy sparse_softmax_cross_entropy",
)
SUMMARIES = _all("tf.summary.", "histogram image merge scalar") | _all(
    "tf.", "scalar_summary histogram_summary merge_summary"
)
MERGE_ALL = frozenset({"tf.summary.merge_all", "tf.merge_all_summaries"})
DRAWN_INITIALIZERS = frozenset(
    n for n in INITIALIZERS if not n.rpartition(".")[2].startswith(("constant", "ones", "zeros"))
)
SCOPES = _all(
    "tf.", "name_scope op_scope variable_scope device control_dependencies variable_op_scope"
)
DEVICES = frozenset({"tf.DeviceSpec", "tf.DeviceSpec.from_string"})
"""What makes a device of its parts and does nothing else."""
LISTS = _all("tf.", "trainable_variables global_variables all_variables")
COLLECTIONS = _all("tf.", "add_to_collection get_collection get_variable_scope get_variable")
CONSTANTS = _all(
    "tf.",
    "AUTO_REUSE newaxis float16 float32 float64 bfloat16 int8 int16 int32 int64 uint8 uint16 bool string complex64 "
    "half double",
)

PURE = MATH | MODULES | NN | RANDOM | LAYERS | LOSSES | SUMMARIES
"""Functions that give tensors made of their arguments."""

BY_ELEMENT = dict.fromkeys(("tf.cast", "tf.constant", "tf.convert_to_tensor", "tf.to_float"), 1) | dict.fromkeys(
    _all("tf.", "add div divide maximum minimum mul multiply pow realdiv scalar_mul sub subtract truediv"), 2
)  # fmt: skip
"""Functions that compute value by value, and how many of their first arguments are values."""

MANY = _all(
    "tf.",
    "clip_by_global_norm dynamic_partition identity_n image.image_gradients image.non_max_suppression linalg.eigh "
    "linalg.normalize linalg.qr linalg.slogdet linalg.svd math.top_k meshgrid nn.sufficient_statistics shape_n unique "
    "unique_with_counts "
    "nn.max_pool_with_argmax nn.moments nn.normalize_moments nn.top_k nn.weighted_moments self_adjoint_eig split svd "
    "unpack unstack",
)
"""Functions that give several tensors."""

NO_VALUES = frozenset({"tf.ones_like", "tf.zeros_like", "tf.shape", "tf.size", "tf.rank"})
"""Functions whose result may need nothing of their argument: TF1 makes a constant where it knows the shape."""

BATCH_NORM = (
    "tf.layers.BatchNormalization", "tf.keras.layers.BatchNormalization", "tf.nn.fused_batch_norm",
    "tf.nn.batch_normalization_with",
)  # fmt: skip
REGULARIZERS = (
    "tf.losses.get_regularization_loss", "tf.losses.get_total_loss", "tf.losses.get_losses",
    "tf.losses.add_loss", "tf.losses.compute_weighted_loss",
)  # fmt: skip
EFFECTS = (
    "tf.Print", "tf.print", "tf.Assert", "tf.assert_", "tf.debugging.", "tf.check_numerics", "tf.add_check",
    "tf.py_func", "tf.numpy_function", "tf.assign", "tf.scatter_", "tf.count_up_to", "tf.metrics.",
    "tf.contrib.metrics.", "tf.py_function", "tf.verify_tensor_all_finite", "tf.group", "tf.tuple", "tf.no_op",
)  # fmt: skip
"""Prefixes of names that TF1 runs only when something fetched needs them."""

DENIED_KEYWORDS = {
    "regularizer": "TM219", "kernel_regularizer": "TM219", "bias_regularizer": "TM219",
    "activity_regularizer": "TM219", "weights_regularizer": "TM219", "biases_regularizer": "TM219",
    "depthwise_regularizer": "TM219", "pointwise_regularizer": "TM219",
    "normalizer_fn": "TM207", "normalizer_params": "TM207", "collections": "TM219",
    "variables_collections": "TM219", "outputs_collections": "TM219", "loss_collection": "TM219",
    "custom_getter": "TM222", "partitioner": "TM222", "caching_device": "TM222", "constraint": "TM222",
    "use_resource": "TM222", "synchronization": "TM222", "aggregation": "TM222", "validate_shape": "TM222",
}  # fmt: skip
"""Arguments that make a call of the list more than pure, each with the rule that says why."""

POSITIONAL = {
    "tf.get_variable": 4, "tf.layers.dense": 6, "tf.layers.conv2d": 11, "tf.variable_scope": 3,
    "tf.random_normal": 4, "tf.random_uniform": 4, "tf.truncated_normal": 4, "tf.random.normal": 4,
    "tf.random.uniform": 4, "tf.random.truncated_normal": 4, "tf.nn.dropout": 3, "tf.layers.dropout": 3,
    "tf.random_crop": 2, "tf.random_shuffle": 1,
    "tf.nn.rnn_cell.BasicLSTMCell": 2, "tf.nn.rnn_cell.LSTMCell": 1, "tf.nn.rnn_cell.GRUCell": 1,
    "tf.nn.rnn_cell.BasicRNNCell": 1, "tf.nn.rnn_cell.DropoutWrapper": 4, "tf.contrib.rnn.BasicLSTMCell": 2,
    "tf.contrib.rnn.LSTMCell": 1, "tf.contrib.rnn.GRUCell": 1, "tf.contrib.rnn.BasicRNNCell": 1,
    "tf.contrib.rnn.DropoutWrapper": 4,
}  # fmt: skip
"""How many arguments may be given by position, where a denied one would come next."""
DEFAULT_POSITIONAL = 6

PYTHON = _all(
    "builtins.",
    "range xrange len zip enumerate list tuple dict set frozenset int float str bool min max sum abs reversed sorted "
    "round any all divmod pow slice repr map filter isinstance type unicode long",
)
IN_STEP = PYTHON - _all("builtins.", "map filter isinstance type repr sorted any all set frozenset")
"""Builtins that may be called in a step; the others are known to have no effect."""

NUMPY = _all(
    "numpy.",
    "abs absolute add allclose amax amin arange arccos arcsin arctan arctan2 argmax argmin argsort array array_equal asarray "
    "average blackman broadcast_to ceil clip column_stack concatenate convolve copy cos cosh count_nonzero cross cumprod "
    "cumsum deg2rad degrees diag diff divide dot dstack dtype einsum equal exp expand_dims expm1 eye flip fliplr flipud "
    "floor floor_divide fmod full full_like greater greater_equal hamming hanning hstack hypot identity indices inner interp "
    "isfinite isinf isnan isscalar kaiser kron less less_equal linspace log log10 log1p log2 logical_and logical_not "
    "logical_or logical_xor logspace matmul max maximum mean median meshgrid min minimum mod multiply negative not_equal "
    "ones ones_like outer pad percentile power prod product rad2deg radians ravel reciprocal remainder repeat reshape rint "
    "roll rot90 round sign sin sinh sort sqrt square squeeze stack std subtract sum swapaxes tan tanh tensordot tile trace "
    "transpose tri tril triu true_divide trunc unique var vstack where zeros zeros_like "
    "float16 float32 float64 int8 int16 int32 int64 uint8 bool_ int_ float_",
)
"""Functions that give numbers or arrays, and do nothing else."""
VIEWS = _all(
    "numpy.",
    "asarray broadcast_to diag expand_dims flip fliplr flipud ravel reshape rot90 squeeze swapaxes transpose",
)
"""Those of them whose arrays may be others, or parts of others, that they are given."""
_ONE_ARRAY = (
    "abs absolute arccos arcsin arctan ceil cos cosh deg2rad degrees exp expm1 floor isfinite isinf isnan log log10 log1p "
    "log2 logical_not negative rad2deg radians reciprocal rint sign sin sinh sqrt square tan tanh trunc"
)
_TWO_ARRAYS = (
    "add arctan2 divide dot equal floor_divide fmod greater greater_equal hypot less less_equal logical_and logical_or "
    "logical_xor matmul maximum minimum mod multiply not_equal outer power remainder subtract true_divide "
    # an array, and along what
    "amax amin argmax argmin concatenate max median min round stack"
)
_THREE = "clip cumprod cumsum mean percentile prod product std sum var"
OUT_PLACES = {
    f"numpy.{name}": place
    for place, names in enumerate((_ONE_ARRAY, _TWO_ARRAYS, _THREE), 1)
    for name in names.split()
}
"""Where the array stands among the arguments of some of them that what they give is written to."""
NUMPY_CONSTANTS = _all(
    "numpy.", "pi e inf nan newaxis float16 float32 float64 int32 int64 uint8 bool_"
)
OTHERS = _all("math.", "ceil cos exp floor log log10 log2 pow sin sqrt tan tanh pi e") | frozenset(
    {"re.sub", "functools.reduce", "operator.mul", "copy.deepcopy", "os.path.join", "os.path.basename",
     "os.path.dirname"}
)  # fmt: skip
CLOCKS = frozenset({"time.time", "time.clock", "time.perf_counter", "time.process_time"})
"""What tells the time and does nothing else."""
SIX = {
    "six.moves.xrange": "builtins.range", "six.moves.range": "builtins.range", "six.moves.zip": "builtins.zip",
    "builtins.range": "builtins.range", "past.builtins.xrange": "builtins.range",
    "builtins.zip": "builtins.zip",
}  # fmt: skip
QUIET_LIBRARIES = (
    "numpy.", "math.", "os.", "re.", "time.", "datetime.", "argparse.", "json.",
    "functools.", "operator.", "random.", "copy.", "string.", "sys.", "logging.", "pickle.", "csv.", "glob.",
    "tempfile.", "shutil.", "builtins.", "six.", "absl.", "yaml.", "scipy.", "easydict.", "configparser.",
    "ConfigParser.", "toml.", "tomllib.", "types.SimpleNamespace", "attrdict.", "munch.", "tf.app.", "tf.flags.", "tf.gfile.",
    "tf.ConfigProto", "tf.GPUOptions", "tf.TensorShape", "tf.logging.", "tf.python_io.", "tf.contrib.training.HParams",
)  # fmt: skip
"""Libraries whose results are Python values: nothing they give belongs to a graph."""

TEXT_METHODS = frozenset(
    "format join split strip lstrip rstrip lower upper replace startswith endswith title count find rsplit index "
    "encode decode zfill".split()
)
READING_METHODS = frozenset("get keys values items copy index count as_list".split()) | TEXT_METHODS
MUTATORS = frozenset(
    "append extend insert update add pop remove setdefault clear sort reverse discard popitem appendleft extendleft "
    "popleft rotate fill resize put sort itemset setflags subtract difference_update intersection_update __setitem__ "
    "__setattr__".split()
)
WRITERS = frozenset("copyto put place putmask fill_diagonal shuffle put_along_axis setitem".split())
"""Functions of libraries that change an array or list that they are given."""
CHANGERS = tuple(f".{name}" for name in sorted(WRITERS))
ARRAY_METHODS = frozenset(
    "reshape astype copy tolist sum mean max min transpose flatten ravel dot cumsum prod squeeze clip round std var "
    "argmax argmin all any item repeat".split()
)
"""Methods of arrays that change nothing."""
OPTIMIZERS = optimizers.NAMES
BATCHES = frozenset(
    {
        "tf.train.batch",
        "tf.train.shuffle_batch",
        "tf.train.maybe_batch",
        "tf.train.maybe_shuffle_batch",
    }
)
"""Those of `DRAWS` that give one tensor where they are given a list of one."""
DRAWS = frozenset(
    {"tf.train.batch", "tf.train.shuffle_batch", "tf.train.batch_join", "tf.train.shuffle_batch_join",
     "tf.train.maybe_batch", "tf.train.maybe_shuffle_batch", "tf.train.slice_input_producer"}
)  # fmt: skip
"""Functions of an input pipeline each of whose results draws one element of one queue."""
