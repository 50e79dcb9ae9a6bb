"""Functions of the proof's list, run in a graph of TF1 and in a traced function: the same values and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from towermigrate.recognize.proof import library

_NUMBERS = np.random.RandomState(3)
X = np.abs(_NUMBERS.randn(4, 6)).astype(np.float32) + 0.1
U = np.clip(X / 4, 0.01, 0.99)
SQUARE = (lambda m: (m @ m.T + np.eye(3)).astype(np.float32))(_NUMBERS.randn(3, 3))
IMAGE = _NUMBERS.rand(2, 8, 8, 3).astype(np.float32)
FILTER = _NUMBERS.randn(3, 3, 3, 4).astype(np.float32)
VOLUME = _NUMBERS.rand(2, 4, 4, 4, 2).astype(np.float32)
ROWS = _NUMBERS.rand(2, 7, 3).astype(np.float32)
IDS = np.array([0, 0, 1, 2], np.int32)
BOX = np.array([[0, 0, 0.5, 0.5]], np.float32)

# What each is given behind the tensor that is fed, by the tensor; a name alone is given that tensor only.
OF_X = {
    "atan2": (U,), "batch_gather": (np.zeros((4, 1), np.int32),), "dynamic_partition": (IDS, 3), "ensure_shape": ([4, 6],),
    "histogram_fixed_width": ([-1.0, 1.0],), "igamma": (X,), "igammac": (X,), "repeat": (2, 0), "reverse_sequence": (IDS + 1, 1),
    "roll": (1, 0), "saturate_cast": ("int32",), "bitcast": ("int32",), "segment_max": (IDS,), "segment_min": (IDS,),
    "segment_prod": (IDS,), "unsorted_segment_max": (IDS, 3), "unsorted_segment_mean": (IDS, 3),
    "unsorted_segment_min": (IDS, 3), "unsorted_segment_prod": (IDS, 3), "unsorted_segment_sqrt_n": (IDS, 3),
    "count_nonzero": (), "digamma": (), "erfc": (), "lbeta": (), "lgamma": (), "rint": (), "sort": (), "asinh": (), "conj": (),
    "real": (), "linalg.diag": (), "linalg.l2_normalize": (1,), "linalg.norm": (), "signal.frame": (4, 2), "math.top_k": (2,),
    "nn.batch_normalization": (X[0], U[0], U[1], U[2], 1e-3), "nn.log_poisson_loss": (U,), "nn.weighted_moments": ([0], U),
    "nn.relu_layer": (np.ones((6, 2), np.float32), np.zeros(2, np.float32)),
    "arg_max": (1,), "arg_min": (1,), "searchsorted": (X,), "to_bfloat16": (), "to_complex128": (), "to_complex64": (),
    "truncatediv": (U,), "truncatemod": (U,), "tensor_scatter_add": ([[0], [2]], U[:2]),
    "tensor_scatter_sub": ([[0], [2]], U[:2]), "tensor_scatter_update": ([[0], [2]], U[:2]), "imag": (), "angle": (),
    "math.multiply_no_nan": (U,), "math.in_top_k": (IDS, 2), "math.lbeta": (),
    "math.igamma": (X,), "math.igammac": (X,), "math.segment_sum": (IDS,), "math.segment_mean": (IDS,),
    "math.segment_max": (IDS,), "math.segment_min": (IDS,), "math.segment_prod": (IDS,),
    "math.unsorted_segment_sum": (IDS, 3), "math.unsorted_segment_mean": (IDS, 3), "math.unsorted_segment_max": (IDS, 3),
    "math.unsorted_segment_min": (IDS, 3), "math.unsorted_segment_prod": (IDS, 3), "math.unsorted_segment_sqrt_n": (IDS, 3),
    "linalg.adjoint": (), "linalg.lstsq": (X[:, :2],), "linalg.matrix_transpose": (), "linalg.matvec": (X[0],), "linalg.pinv": (),
    "linalg.qr": (), "linalg.svd": (), "linalg.tensor_diag": (), "signal.dct": (), "signal.idct": (),
    "signal.fftshift": (), "signal.ifftshift": (), "signal.overlap_and_add": (2,),
    "signal.mfccs_from_log_mel_spectrograms": (),
    **{f"math.{name}": () for name in (
        "angle bessel_i0e bessel_i1e conj cumulative_logsumexp imag real reciprocal_no_nan reduce_euclidean_norm").split()},
    **{f"math.{name}": (U,) for name in (
        "add atan2 divide divide_no_nan equal floordiv floormod greater greater_equal less less_equal maximum minimum mod "
        "multiply not_equal pow squared_difference subtract truediv xdivy xlogy").split()},
    **{f"math.{name}": () for name in (
        "argmax argmin asinh atan bessel_i0 bessel_i1 ceil cos cosh count_nonzero cumprod cumsum digamma erf erfc expm1 floor "
        "is_finite is_inf is_nan lgamma log1p log_sigmoid log_softmax negative reciprocal reduce_logsumexp reduce_max "
        "reduce_min reduce_prod reduce_std reduce_variance rint round rsqrt sigmoid sign sin sinh softmax softplus softsign "
        "tan tanh zero_fraction").split()},
}  # fmt: skip
OF_U = dict.fromkeys("acos asin atanh math.acos math.asin math.atanh".split(), ())
OF_SQUARE = {
    "matrix_set_diag": (X[0, :3],), "matrix_solve": (SQUARE,), "matrix_triangular_solve": (SQUARE,), "linalg.band_part": (0, -1),
    "cholesky_solve": (SQUARE,), "linalg.cholesky_solve": (SQUARE,), "linalg.set_diag": (X[0, :3],),
    "linalg.triangular_solve": (SQUARE,), "linalg.cross": (SQUARE + 1,),
    **dict.fromkeys("matrix_square_root self_adjoint_eigvals linalg.eigh linalg.eigvalsh linalg.normalize " "linalg.slogdet linalg.tensor_diag_part".split(), ()),
    "linalg.solve": (SQUARE,), "linalg.matmul": (SQUARE,), "linalg.tensordot": (SQUARE, 1),
    **dict.fromkeys("cholesky matrix_determinant matrix_diag_part matrix_inverse self_adjoint_eig linalg.cholesky linalg.det " "linalg.diag_part linalg.inv linalg.logdet linalg.trace linalg.transpose".split(), ()),
}  # fmt: skip
OF_IMAGE = {
    "extract_image_patches": ([1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "SAME"), "space_to_batch": ([[0, 0], [0, 0]], 2),
    "image.adjust_brightness": (0.1,), "image.adjust_contrast": (1.2,), "image.adjust_gamma": (0.8,),
    "image.adjust_hue": (0.1,), "image.adjust_saturation": (0.9,), "image.central_crop": (0.5,),
    "image.convert_image_dtype": ("float32",), "image.crop_and_resize": (BOX, [0], [3, 3]),
    "image.crop_to_bounding_box": (1, 1, 4, 4), "image.pad_to_bounding_box": (1, 1, 12, 12), "image.psnr": (IMAGE * 0.9, 1.0),
    "image.resize_area": ([4, 4],), "image.resize_bicubic": ([5, 5],), "image.resize_images": ([5, 4],), "image.resize_image_with_crop_or_pad": (6, 10),
    "nn.avg_pool2d": (2, 2, "SAME"), "nn.convolution": (FILTER, "SAME"), "nn.max_pool2d": (2, 2, "SAME"),
    "nn.dilation2d": (FILTER[..., 0], [1, 1, 1, 1], [1, 1, 1, 1], "SAME"), "nn.pool": ([2, 2], "AVG", "SAME"),
    "nn.max_pool_with_argmax": ([1, 2, 2, 1], [1, 2, 2, 1], "SAME"), "nn.space_to_depth": (2,),
    "batch_to_space": ([[0, 0], [0, 0]], 1), "image.draw_bounding_boxes": (np.tile(BOX[None], [2, 1, 1]),),
    "image.extract_image_patches": ([1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "SAME"), "image.resize": ([5, 4],),
    "image.resize_with_crop_or_pad": (6, 10), "image.ssim": (IMAGE * 0.9, 1.0, 3), "image.transpose": (),
    "image.ssim_multiscale": (IMAGE * 0.9, 1.0, (0.5, 0.5), 2),
    "image.rgb_to_yiq": (), "image.yiq_to_rgb": (), "nn.erosion2d": (FILTER[..., 0], [1, 1, 1, 1], [1, 1, 1, 1], "SAME"),
    "nn.space_to_batch": ([[0, 0], [0, 0]], 2), "nn.sufficient_statistics": ([0],), "losses.mean_pairwise_squared_error": (IMAGE * 0.5,),
    **{f"image.{name}": () for name in (
        "flip_left_right flip_up_down hsv_to_rgb image_gradients per_image_standardization rgb_to_grayscale rgb_to_hsv "
        "rgb_to_yuv rot90 sobel_edges total_variation transpose_image yuv_to_rgb").split()},
}  # fmt: skip
OF_OTHERS = {
    "nn.avg_pool1d": (ROWS, 2, 2, "SAME"), "nn.max_pool1d": (ROWS, 2, 2, "SAME"),
    "nn.conv1d_transpose": (ROWS, _NUMBERS.rand(3, 2, 3).astype(np.float32), [2, 14, 2], 2, "SAME"),
    "nn.conv3d_transpose": (VOLUME, _NUMBERS.rand(2, 2, 2, 1, 2).astype(np.float32), [2, 8, 8, 8, 1], [1, 2, 2, 2, 1], "SAME"),
    "nn.depth_to_space": (np.tile(IMAGE[..., :1], [1, 1, 1, 4]), 2),
    "extract_volume_patches": (VOLUME, [1, 2, 2, 2, 1], [1, 2, 2, 2, 1], "SAME"),
    "nn.avg_pool3d": (VOLUME, [1, 2, 2, 2, 1], [1, 2, 2, 2, 1], "SAME"),
    "nn.max_pool3d": (VOLUME, [1, 2, 2, 2, 1], [1, 2, 2, 2, 1], "SAME"),
}  # fmt: skip
# What is given something made of the tensor that is fed.
OF_MADE: dict[str, Any] = {
    "fft2d": lambda tf, x: tf.fft2d(tf.cast(x, tf.complex64)), "ifft2d": lambda tf, x: tf.ifft2d(tf.cast(x, tf.complex64)),
    "ifft": lambda tf, x: tf.ifft(tf.cast(x, tf.complex64)), "fft3d": lambda tf, x: tf.fft3d(tf.cast([x], tf.complex64)),
    "ifft3d": lambda tf, x: tf.ifft3d(tf.cast([x], tf.complex64)), "signal.rfft2d": lambda tf, x: tf.signal.rfft2d(x),
    "signal.fft": lambda tf, x: tf.signal.fft(tf.cast(x, tf.complex64)), "signal.ifft": lambda tf, x: tf.signal.ifft(tf.cast(x, tf.complex64)),
    "signal.fft2d": lambda tf, x: tf.signal.fft2d(tf.cast(x, tf.complex64)), "signal.ifft2d": lambda tf, x: tf.signal.ifft2d(tf.cast(x, tf.complex64)),
    "signal.irfft": lambda tf, x: tf.signal.irfft(tf.cast(x, tf.complex64)),
    "signal.inverse_stft": lambda tf, x: tf.signal.inverse_stft(tf.cast(x[:, :5], tf.complex64), 8, 4),
    "signal.hamming_window": lambda tf, x: tf.signal.hamming_window(6) * x,
    "signal.linear_to_mel_weight_matrix": lambda tf, x: tf.matmul(x, tf.signal.linear_to_mel_weight_matrix(3, 6)),
    "identity_n": lambda tf, x: tf.identity_n([x, x * 2]), "shape_n": lambda tf, x: tf.shape_n([x, x[0]]),
    "unique": lambda tf, x: tf.unique(tf.cast(x[0] * 3, tf.int32)), "unravel_index": lambda tf, x: tf.unravel_index([5, 7], tf.shape(x)),
    "unique_with_counts": lambda tf, x: tf.unique_with_counts(tf.cast(x[0] * 3, tf.int32)),
    "sparse_to_dense": lambda tf, x: tf.sparse_to_dense([[1], [3]], [6], x[0, :2], 0.5),
    "linalg.eye": lambda tf, x: tf.linalg.eye(4, 6) * x, "linalg.global_norm": lambda tf, x: tf.linalg.global_norm([x, x * 2]),
    "math.add_n": lambda tf, x: tf.math.add_n([x, x * 2]), "math.accumulate_n": lambda tf, x: tf.math.accumulate_n([x, x * 2]),
    "math.bincount": lambda tf, x: tf.math.bincount(tf.cast(x[0] * 3, tf.int32)), "math.betainc": lambda tf, x: tf.math.betainc(x, x + 1, U),
    "math.confusion_matrix": lambda tf, x: tf.math.confusion_matrix(tf.cast(x[0], tf.int32), tf.cast(x[1], tf.int32), 8),
    "math.invert_permutation": lambda tf, x: tf.math.invert_permutation(tf.argsort(x[0])), "math.polyval": lambda tf, x: tf.math.polyval([x, x + 1], U),
    "math.polygamma": lambda tf, x: tf.math.polygamma(tf.ones_like(x), x), "math.zeta": lambda tf, x: tf.math.zeta(x + 1, x),
    "math.logical_and": lambda tf, x: tf.math.logical_and(x > 1, x < 2), "math.logical_or": lambda tf, x: tf.math.logical_or(x > 1, x < 0.5),
    "math.logical_xor": lambda tf, x: tf.math.logical_xor(x > 1, x < 2), "math.logical_not": lambda tf, x: tf.math.logical_not(x > 1),
    "math.reduce_all": lambda tf, x: tf.math.reduce_all(x > 0.2, 0), "math.reduce_any": lambda tf, x: tf.math.reduce_any(x > 1, 0),
    "math.scalar_mul": lambda tf, x: tf.math.scalar_mul(2.0, x),
    **{f"bitwise.{name}": lambda tf, x, name=name: getattr(tf.bitwise, name)(tf.cast(x * 9, tf.int32), 2) for name in "bitwise_and bitwise_or bitwise_xor left_shift right_shift".split()},
    "bitwise.invert": lambda tf, x: tf.bitwise.invert(tf.cast(x * 9, tf.int32)),
}  # fmt: skip
CALLS = [
    *((name, X, more) for name, more in OF_X.items()),
    *((name, U, more) for name, more in OF_U.items()),
    *((name, SQUARE, more) for name, more in OF_SQUARE.items()),
    *((name, IMAGE, more) for name, more in OF_IMAGE.items()),
    *((name, more[0], more[1:]) for name, more in OF_OTHERS.items()),
    *((name, X, more) for name, more in OF_MADE.items()),
]


@pytest.mark.parametrize("name", [name for name, _, _ in CALLS])
def test_it_is_on_the_list(name: str) -> None:
    assert f"tf.{name}" in library.PURE


@pytest.mark.full
def test_all_of_them_give_the_same() -> None:
    tf = pytest.importorskip("tensorflow")
    v1 = tf.compat.v1
    for name, fed, more in CALLS:

        def computed(given: Any, name: str = name, more: Any = more) -> list[Any]:
            function: Any = v1
            for part in name.split("."):
                function = getattr(function, part)
            made = more(v1, given) if callable(more) else function(given, *more)
            values = [t for t in tf.nest.flatten(made) if t is not None]
            whole = tf.add_n(
                [tf.reduce_sum(t * t) for t in values if t.dtype == tf.float32] or [0.0]
            )
            try:
                slopes = tf.gradients(whole, [given])
            except LookupError:  # no gradient in either
                slopes = []
            return [*values, *(tf.convert_to_tensor(s) for s in slopes if s is not None)]

        with tf.Graph().as_default():
            placeholder = v1.placeholder(tf.float32, fed.shape)
            made = computed(placeholder)
            with v1.Session() as session:
                expected = session.run(made, {placeholder: fed})
        traced = tf.function(computed, autograph=False)
        actual = [t.numpy() for t in traced(tf.constant(fed))]
        assert len(actual) == len(expected), name
        for one, other in zip(actual, expected, strict=True):
            assert one.dtype == other.dtype and one.shape == other.shape, name
            # Gradients of a few are computed in another order, within roundings.
            np.testing.assert_allclose(one, other, rtol=2e-6, atol=1e-6, err_msg=name)
