"""Image completion with a GAN that is trained in three stages on several GPUs.

Stage 1 teaches the generator to fill holes by the squared error alone, stage 2
teaches the discriminator to tell filled images from real ones, stage 3 trains
both against each other.
"""

import os

import numpy as np
import tensorflow as tf

IMAGE_SIZE = 8
CHANNELS = 1

# Images per GPU in one step.
BATCH_SIZE = 4

# Updates in each of the stages.
GEN_ONLY_STEPS = 12
DISCM_ONLY_STEPS = 12
FULL_STEPS = 12

# Weight of the adversarial part of the generator's loss.
ADVERSARIAL_WEIGHT = 0.01

MODEL_DIR = "completion_model"


def conv(x, filters, stride, name, activation=tf.nn.elu):
    """A 3x3 convolution with bias."""
    with tf.variable_scope(name):
        kernel = tf.get_variable(
            "kernel",
            [3, 3, x.get_shape().as_list()[-1], filters],
            initializer=tf.truncated_normal_initializer(stddev=0.1),
        )
        bias = tf.get_variable("bias", [filters], initializer=tf.zeros_initializer())
        y = tf.nn.conv2d(x, kernel, strides=[1, stride, stride, 1], padding="SAME")
        y = tf.nn.bias_add(y, bias)
        return activation(y) if activation is not None else y


def build_generator(holed):
    """Fills the hole of each image. Input and output are [batch, 8, 8, 1]."""
    h = conv(holed, 8, 1, "conv1")
    h = conv(h, 8, 1, "conv2")
    return conv(h, CHANNELS, 1, "conv3", activation=tf.nn.tanh)


def build_discriminator(images, noise):
    """Scores images, one logit each. Noise is added first, as in instance noise."""
    h = conv(images + noise, 8, 2, "conv1")
    h = conv(h, 8, 2, "conv2")
    h = tf.reshape(h, [-1, 2 * 2 * 8])
    return tf.layers.dense(h, 1, name="score")


def build_loss(images, generated, real_score, fake_score):
    """Returns the losses of the three stages."""
    completion_loss = tf.reduce_mean(tf.square(images - generated))

    real_loss = tf.reduce_mean(
        tf.nn.sigmoid_cross_entropy_with_logits(
            logits=real_score, labels=tf.ones_like(real_score)
        )
    )
    fake_loss = tf.reduce_mean(
        tf.nn.sigmoid_cross_entropy_with_logits(
            logits=fake_score, labels=tf.zeros_like(fake_score)
        )
    )
    fool_loss = tf.reduce_mean(
        tf.nn.sigmoid_cross_entropy_with_logits(
            logits=fake_score, labels=tf.ones_like(fake_score)
        )
    )

    gen_only_loss = completion_loss
    discm_only_loss = real_loss + fake_loss
    full_loss = completion_loss + ADVERSARIAL_WEIGHT * fool_loss + discm_only_loss
    return gen_only_loss, discm_only_loss, full_loss


def average_gradients(tower_grads):
    """Averages the gradients over all towers.

    Some variables play no part in some of the losses; their gradients are None
    and they are left out.
    """
    average_grads = []
    for grad_and_vars in zip(*tower_grads):
        grads = [tf.expand_dims(g, 0) for g, _ in grad_and_vars if g is not None]
        if not grads:
            continue
        grad = tf.reduce_mean(tf.concat(grads, 0), 0)
        average_grads.append((grad, grad_and_vars[0][1]))
    return average_grads


class Images(object):
    """Endless smooth random images, the same ones in every run."""

    def __init__(self, seed):
        self._rng = np.random.RandomState(seed)

    def next_batch(self, count):
        """Returns (images, images with a hole), float32 [count, 8, 8, 1] each."""
        phase = self._rng.uniform(0, np.pi, size=(count, 1, 1, 1))
        slope = self._rng.uniform(0.2, 0.8, size=(count, 2, 1, 1, 1))
        rows = np.arange(IMAGE_SIZE).reshape(1, -1, 1, 1)
        columns = np.arange(IMAGE_SIZE).reshape(1, 1, -1, 1)
        images = np.sin(phase + slope[:, 0] * rows + slope[:, 1] * columns)
        images = images.astype(np.float32)

        holed = images.copy()
        holed[:, 2:6, 2:6, :] = 0.0
        return images, holed

    def next_noise(self, count):
        """Returns noise for the discriminator, float32 [count, 8, 8, 1]."""
        shape = (count, IMAGE_SIZE, IMAGE_SIZE, CHANNELS)
        return self._rng.normal(scale=0.05, size=shape).astype(np.float32)


def train(num_gpus=2, batch_size=BATCH_SIZE, model_dir=MODEL_DIR):
    """Trains all three stages and saves the model."""
    data = Images(seed=3)
    total_batch = batch_size * num_gpus

    with tf.Graph().as_default(), tf.device("/cpu:0"):
        global_step = tf.get_variable(
            "global_step", [], initializer=tf.constant_initializer(0), trainable=False
        )

        # One optimizer per stage: they must not share their moments.
        gen_only_opt = tf.train.AdamOptimizer(learning_rate=0.002)
        discm_only_opt = tf.train.RMSPropOptimizer(learning_rate=0.001)
        full_opt = tf.train.MomentumOptimizer(learning_rate=0.005, momentum=0.9)

        # Whole batches are fed in, and split evenly among the GPUs.
        image_shape = [None, IMAGE_SIZE, IMAGE_SIZE, CHANNELS]
        images = tf.placeholder(tf.float32, image_shape, name="images")
        holed = tf.placeholder(tf.float32, image_shape, name="holed")
        noise = tf.placeholder(tf.float32, image_shape, name="noise")
        images_splits = tf.split(images, num_gpus)
        holed_splits = tf.split(holed, num_gpus)
        noise_splits = tf.split(noise, num_gpus)

        # Gradients of every tower, stage by stage.
        gen_only_tower_grads = []
        discm_only_tower_grads = []
        full_tower_grads = []

        with tf.variable_scope(tf.get_variable_scope()):
            for i in range(num_gpus):
                with tf.device("/gpu:%d" % i):
                    with tf.name_scope("tower_%d" % i):
                        _images = images_splits[i]
                        _holed = holed_splits[i]
                        _noise = noise_splits[i]

                        with tf.variable_scope("generator"):
                            generated = build_generator(_holed)

                        # The discriminator sees real images first, ...
                        with tf.variable_scope("discriminator"):
                            with tf.name_scope("real"):
                                real_score = build_discriminator(_images, _noise)

                        # ... then what the generator made, with the same weights.
                        with tf.variable_scope("discriminator", reuse=True):
                            with tf.name_scope("fake"):
                                fake_score = build_discriminator(generated, _noise)

                        gen_only_loss, discm_only_loss, full_loss = build_loss(
                            _images, generated, real_score, fake_score
                        )

                        # All other towers use the variables of the first.
                        tf.get_variable_scope().reuse_variables()

                        discm_vars = tf.get_collection(
                            tf.GraphKeys.TRAINABLE_VARIABLES, "discriminator"
                        ) + tf.get_collection(
                            tf.GraphKeys.TRAINABLE_RESOURCE_VARIABLES, "discriminator"
                        )

                        gen_only_grads = gen_only_opt.compute_gradients(gen_only_loss)
                        discm_only_grads = discm_only_opt.compute_gradients(
                            discm_only_loss, var_list=discm_vars
                        )
                        full_grads = full_opt.compute_gradients(full_loss)

                        gen_only_tower_grads.append(gen_only_grads)
                        discm_only_tower_grads.append(discm_only_grads)
                        full_tower_grads.append(full_grads)

        # Average over the towers.
        gen_only_grads = average_gradients(gen_only_tower_grads)
        discm_only_grads = average_gradients(discm_only_tower_grads)
        full_grads = average_gradients(full_tower_grads)

        # All stages count on the same global step.
        gen_only_train = gen_only_opt.apply_gradients(
            gen_only_grads, global_step=global_step
        )
        discm_only_train = discm_only_opt.apply_gradients(
            discm_only_grads, global_step=global_step
        )
        full_train = full_opt.apply_gradients(full_grads, global_step=global_step)

        saver = tf.train.Saver()
        init = tf.global_variables_initializer()

        config = tf.ConfigProto(allow_soft_placement=True)
        with tf.Session(config=config) as sess:
            sess.run(init)

            # Stage 1: the generator alone. It needs no noise.
            for step in range(GEN_ONLY_STEPS):
                batch_images, batch_holed = data.next_batch(total_batch)
                _, loss_value = sess.run(
                    [gen_only_train, gen_only_loss],
                    feed_dict={images: batch_images, holed: batch_holed},
                )
                if step % 4 == 0:
                    print("generator only, step %d: loss %.6f" % (step, loss_value))

            # Stage 2: the discriminator alone.
            for step in range(DISCM_ONLY_STEPS):
                batch_images, batch_holed = data.next_batch(total_batch)
                batch_noise = data.next_noise(total_batch)
                _, loss_value = sess.run(
                    [discm_only_train, discm_only_loss],
                    feed_dict={
                        images: batch_images,
                        holed: batch_holed,
                        noise: batch_noise,
                    },
                )
                if step % 4 == 0:
                    print("discriminator only, step %d: loss %.6f" % (step, loss_value))

            # Stage 3: both of them.
            for step in range(FULL_STEPS):
                batch_images, batch_holed = data.next_batch(total_batch)
                batch_noise = data.next_noise(total_batch)
                _, loss_value = sess.run(
                    [full_train, full_loss],
                    feed_dict={
                        images: batch_images,
                        holed: batch_holed,
                        noise: batch_noise,
                    },
                )
                if step % 4 == 0:
                    print("full, step %d: loss %.6f" % (step, loss_value))

            if not os.path.isdir(model_dir):
                os.makedirs(model_dir)
            path = saver.save(sess, os.path.join(model_dir, "completion.ckpt"))
            print("saved to %s" % path)


def main():
    train()


if __name__ == "__main__":
    main()
