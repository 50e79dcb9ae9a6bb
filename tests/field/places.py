"""Where the tower loops of the repositories stand that the tool is tried on, as read by people.

A file may hold more loops than are listed; a line is the loop's header, or, where towers are built by a helper,
the loop in the helper. Every one must be among the programs that the tool reports.
"""

from __future__ import annotations

PLACES: dict[str, dict[str, tuple[int, ...]]] = {
    "allenai/bi-att-flow": {
        "basic/model.py": (17,),
        "basic/trainer.py": (49,),
        "basic_cnn/model.py": (370,),
        "basic_cnn/trainer.py": (49,),
    },
    "allenai/bilm-tf": {"bilm/training.py": (700,)},
    "arashno/tensorflow_multigpu_imagenet": {"architectures/model.py": (151,)},
    "argman/EAST": {"multigpu_train.py": (103,)},
    "aymericdamien/TensorFlow-Examples": {
        "tensorflow_v1/examples/6_MultiGPU/multigpu_cnn.py": (133,),
        "tensorflow_v1/notebooks/6_MultiGPU/multigpu_cnn.ipynb": (),
    },
    "balancap/SSD-Tensorflow": {"deployment/model_deploy.py": (190, 298)},
    "bgshin/doc-classify-multi-gpu": {
        "src/cnntw/train_multi.py": (170,),
        "src/multi_flower.py": (174,),
        "src/tf_record_read_test.py": (196,),
        "src/cifar10/cifar10_multi_gpu_train.py": (166,),
    },
    "biuyq/CT-GAN": {
        "CT-GANs/tensorflow_generative_model/CT_gan_cifar_resnet.py": (197, 212, 269, 316),
        "CT-GANs/tensorflow_generative_model/CT_gan_64x64.py": (480,),
    },
    "buriburisuri/sugartensor": {
        "sugartensor/sg_main.py": (612,),
        "sugartensor/sg_train.py": (196,),
    },
    "bzhangGo/zero": {"utils/parallel.py": (100,)},
    "CarlosCCV/3net": {"trinet_main.py": (84,)},
    "CentaurusM/AON": {"train_multi_gpu.py": (76,)},
    "charlesq34/pointnet2": {"train_multi_gpu.py": (181,)},
    "dalgu90/resnet_imagenet_baseline": {"model.py": (422,)},
    "danielewworrall/harmonicConvolutions": {"deprecated/model_assembly_train.py": (292,)},
    "demelin/nematode": {"codebase/ops.py": (32, 106, 151)},
    "EdinburghNLP/nematus": {"nematus/model_updater.py": (595,), "nematus/train.py": (126,)},
    "goldenwoman/Recursive_Stereo_Disill": {"MS_main.py": (86,)},
    "guotong1988/BERT-GPU": {"run_pretraining_gpu.py": (628,)},
    "huyng/tensorflow-vgg": {"train_model_parallel.py": (82,)},
    "JeremyTF/Yolov3-Tensorflow-Multi-GPU": {
        "train_4.py": (130,),
        "train_5.py": (117,),
        "multiple_cnn.py": (144,),
    },
    "JiahuiYu/neuralgym": {"neuralgym/train/multigpu_trainer.py": (69,)},
    "JZDSS/multi-gpus": {
        "train_muti_gpus_mix_exp.py": (115,),
        "train_ssd.py": (107,),
        "train_feed.py": (183,),
        "trainer.py": (62,),
    },
    "kimiyoung/transformer-xl": {"tf/train_gpu.py": (250, 386)},
    "Kyubyong/tacotron": {"train_multi_gpus.py": (48,)},
    "mozilla/DeepSpeech": {"training/deepspeech_training/train.py": (309,)},
    "mrharicot/monodepth": {"monodepth_main.py": (107,)},
    "nakosung/tensorflow-wavenet": {"train.py": (247,)},
    "normanheckscher/mnist-multi-gpu": {
        "mnist_multi_gpu_batching_train.py": (500,),
        "mnist_multi_gpu_sonnet.py": (393,),
        "older/mnist_multi_gpu_train.py": (162,),
        "multi_gpu.py": (29,),
    },
    "NVIDIA/OpenSeq2Seq": {"open_seq2seq/models/model.py": (389,)},
    "NVlabs/stylegan": {
        "training/training_loop.py": (171,),
        "dnnlib/tflib/optimizer.py": (116,),
    },
    "openai/ebm_code_release": {"train.py": (678,)},
    "openai/finetune-transformer-lm": {"train.py": (200,)},
    "openai/iaf": {"tf_train.py": (130,)},
    "openai/improved-gan": {"imagenet/build_model.py": (18,)},
    "rafaljozefowicz/lm": {"language_model.py": (21,)},
    "Rayhane-mamah/Tacotron-2": {
        "tacotron/models/tacotron.py": (102, 293, 397),
        "wavenet_vocoder/models/wavenet.py": (267, 483, 553),
    },
    "Sanster/tf_multi_gpu_example": {"multi_gpu_train.py": (15,)},
    "Sarasra/models": {
        "tutorials/image/cifar10/cifar10_multi_gpu_train.py": (170,),
        "tutorials/image/cifar10_estimator/cifar10_main.py": (94,),
        "research/capsules/models/model.py": (180,),
        "research/inception/inception/inception_train.py": (232,),
    },
    "SeonbeomKim/TensorFlow-MultiGPU": {"multi_gpu/Placeholder/MultiGPU.py": (16,)},
    "skang29/GANs": {
        "Parallel_GAN_structure/parallel_training_model.py": (166,),
        "Parallel_GAN_structure/sndcgan_zgp/ops/nccl_utils.py": (88,),
    },
    "SoulDuck/multi_gpu": {"sync_cifar.py": (269,)},
    "tensorflow/tensor2tensor": {"tensor2tensor/utils/expert_utils.py": (171,)},
    "tensorpack/tensorpack": {"tensorpack/graph_builder/training.py": (101,)},
    "THUNLP-MT/THUMT": {"thumt/utils/parallel.py": (48,)},
    "timsainb/Tensorflow-MultiGPU-VAE-GAN": {"VAE-GAN-multi-gpu-celebA.ipynb": ()},
    "tkarras/progressive_growing_of_gans": {"train.py": (178,), "tfutil.py": (315,)},
    "vahidk/TensorflowFramework": {"common/optimizer.py": (96,)},
    "watsonyanghx/GAN_Lib_Tensorflow": {
        "SNGAN/gan_imagNet_resnet.py": (348, 366, 483),
        "SNGAN/gan_cifar_resnet.py": (327, 347, 464),
    },
    "wenwei202/terngrad": {
        "terngrad/inception/inception_train.py": (316, 375, 438),
        "slim/deployment/model_deploy.py": (189, 296),
    },
    "zihangdai/xlnet": {"train_gpu.py": (228,)},
}
"""Lines by file by repository; a file with no lines must hold a program anywhere (cells of a notebook)."""

NEAR = 3
"""A program may be reported this many lines from a header that was noted by hand."""


def missing(repository: str, found: list[tuple[str, int]]) -> list[str]:
    """The tower loops of a repository (`owner/name`) that are not among the found ones."""
    absent = []
    for path, lines in PLACES.get(repository, {}).items():
        here = [line for file, line in found if file == path]
        if not lines and not here:
            absent.append(path)
        for line in lines:
            if not any(abs(line - each) <= NEAR for each in here):
                absent.append(f"{path}:{line}")
    return absent
